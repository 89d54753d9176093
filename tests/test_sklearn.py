"""scikit-learn's own estimator checks, and the tools around estimators that people use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from learners import MATRIX
from regretless import (
    AIOLI,
    FOLKLORE,
    FTRL,
    GAF,
    OGD,
    ExponentiatedGradient,
    FollowTheLeader,
    GeneralGAF,
    LinearizedFTRL,
    MirrorDescent,
    MirrorDescentAggregator,
    Mixture,
    OneVsRest,
    OnlineLogisticRegression,
    OnlineToBatch,
    Perceptron,
    StronglyConvexOGD,
    VovkAzouryWarmuth,
)
from regretless.evaluate.registry import public_predictors
from regretless.learners.batch.rows import BatchPredictor

# The checks' rows have entries of around 100, and their targets are large.
SUITED: dict[str, Any] = {
    "feature_bound": lambda learner: 200.0 if isinstance(learner, ExponentiatedGradient) else None,
    "bound": lambda learner: 200.0,
    "scale": lambda learner: 100.0 if is_regressor(learner) else 10.0,
    "signed": lambda learner: True,
    "n_samples": lambda learner: 128,
    "radius": lambda learner: 10.0 if is_regressor(learner) else 2.0,
    "loss": lambda learner: (
        "absolute" if is_regressor(learner) and isinstance(learner, ExponentiatedGradient) else learner.loss
    ),
}


def suited(learner: Any) -> Any:
    """A learner with the parameters of `SUITED` that it has."""
    names = SUITED.keys() & learner.get_params(deep=False).keys()
    return clone(learner).set_params(**{name: SUITED[name](learner) for name in names})


def estimators() -> list[Any]:
    """Every public predictor that fits, in its default configuration; of numbers too, in that of the test matrix."""
    kinds = [kind for kind in public_predictors().values() if hasattr(kind, "fit")]
    found = [suited(kind._example()) for kind in kinds if kind is not MirrorDescentAggregator]
    numbers = {type(entry.learner): entry.learner for entry in reversed(MATRIX) if not entry.classifies}
    found += [suited(learner) for kind, learner in numbers.items() if not is_regressor(kind._example())]
    return [
        *found,
        MirrorDescentAggregator(scale=10.0, domain="octahedron", bound=200.0),  # its stumps see one column alone
        OnlineToBatch(OGD(), "average"),
        Mixture([OGD(), LinearizedFTRL()]),  # which takes sparse rows
    ]


ESTIMATORS = estimators()

ZERO_WEIGHTS = "a row of weight 0 is a row left out, wherever it stands: a block of them is legal and changes nothing"
REPEATED_ROWS = (
    "rows are met one after another: a row of weight 2 is one forecast and one step, the same row twice is two"
)
DEFAULT_SET = "the default of `domain` is a frozen set of regretless.domains, and the check allows plain values alone"
RATE = "the check sets alpha=0.01, which it takes for a regularization: here it is the rate of the steps"
LINEAR = "its losses are linear: targets are slopes, and no forecast comes near them"
WIDE_BOUND = (
    "steps are those of the theorem for entries of up to 200, which some checks have: 200 rows with entries of up to 4 "
    "hardly move the weights"
)


def expected_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, BatchPredictor):
        return {}
    failures = {"check_all_zero_sample_weights_error": ZERO_WEIGHTS}
    learner = getattr(estimator, "estimator", estimator)
    sums_over_rows = VovkAzouryWarmuth | GeneralGAF | FTRL | FollowTheLeader  # GeneralGAF with the squared loss
    if not isinstance(learner, sums_over_rows):
        failures["check_sample_weight_equivalence_on_dense_data"] = REPEATED_ROWS
        if estimator.__sklearn_tags__().input_tags.sparse:
            failures["check_sample_weight_equivalence_on_sparse_data"] = REPEATED_ROWS
    if isinstance(estimator, MirrorDescent | FollowTheLeader):
        failures["check_parameters_default_constructible"] = DEFAULT_SET
    if isinstance(estimator, FollowTheLeader):
        failures["check_regressors_train"] = LINEAR
    if is_regressor(estimator) and isinstance(estimator, LinearizedFTRL):
        failures["check_regressors_train"] = RATE
    if is_regressor(estimator) and isinstance(estimator, MirrorDescentAggregator):
        failures["check_regressors_train"] = WIDE_BOUND
    return failures


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_estimator_checks(estimator: Any) -> None:
    """All of them, those that are expected to fail too: they fail."""
    expected = expected_failures(estimator)
    results = check_estimator(clone(estimator), on_fail=None, on_skip=None, expected_failed_checks=expected)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed, failed
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == expected.keys()
    assert sum(result["status"] == "passed" for result in results) > 40


def shuffled(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize(
    "learner",
    [
        OnlineLogisticRegression(),
        FOLKLORE(radius=5.0),
        GAF(radius=5.0, regularization=0.1),
        Perceptron(),
        OGD(),
        StronglyConvexOGD(),
        LinearizedFTRL(),
        MirrorDescent(gradient_bound=3.0),
        OneVsRest(AIOLI(radius=5.0)),
        Mixture([FOLKLORE(radius=5.0), GAF(radius=5.0, regularization=0.1)]),
    ],
    ids=repr,
)
def test_in_a_pipeline_under_cross_validation(learner: Any) -> None:
    X, y = shuffled(*load_iris(return_X_y=True))
    names = load_iris().target_names[y]
    assert cross_val_score(make_pipeline(StandardScaler(), learner), X, names, cv=5).mean() > 0.75


@pytest.mark.parametrize(
    ("learner", "grid"),
    [
        (VovkAzouryWarmuth(), {"regularization": [1e-3, 1e-1, 10.0, 1e3]}),
        (OGD(loss="absolute"), {"radius": [1e-3, 20.0]}),
        (OGD(), {"loss": ["squared", "absolute"], "step": ["theory", "adagrad-norm"], "radius": [20.0]}),
    ],
    ids=repr,
)
def test_in_a_grid_search(learner: Any, grid: dict[str, list[Any]]) -> None:
    X, y = shuffled(*load_diabetes(return_X_y=True))
    search = GridSearchCV(learner, grid, cv=4).fit(X, (y - 150) / 80)
    assert search.best_params_.get("regularization", 0.0) < 1e3
    assert search.best_params_.get("radius", 20.0) == 20.0
    assert search.score(X, (y - 150) / 80) > 0.4


@pytest.mark.parametrize("learner", [AIOLI(radius=5.0), StronglyConvexOGD()], ids=repr)
def test_as_a_calibrated_classifier(learner: Any) -> None:
    """Of probabilities, and of scores."""
    X, y = shuffled(*load_iris(return_X_y=True))
    model = CalibratedClassifierCV(learner, method="sigmoid", cv=3).fit(X[y > 0], y[y > 0])
    assert model.predict_proba(X).shape == (150, 2)

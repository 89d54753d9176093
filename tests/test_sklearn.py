"""scikit-learn's own estimator checks, and the tools around estimators that people use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from regretless import (
    AIOLI,
    FOLKLORE,
    GAF,
    OGD,
    ONS,
    AggregatingForecaster,
    ExponentiatedGradient,
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

ESTIMATORS = [
    OnlineLogisticRegression(),
    AIOLI(),
    FOLKLORE(),
    GAF(),
    ONS(radius=2.0, gamma=0.25, epsilon=1.0),
    ONS(radius=1.0),
    AggregatingForecaster(method="langevin", n_samples=128),
    Mixture([FOLKLORE(), OGD()], share=0.01),
    Mixture([OGD(), LinearizedFTRL()]),
    OneVsRest(AIOLI()),
    OnlineToBatch(FOLKLORE(), "last"),
    OnlineToBatch(FOLKLORE(), random_state=1),
    OnlineToBatch(OGD(), "average"),
    OnlineToBatch(VovkAzouryWarmuth(), "last"),
    VovkAzouryWarmuth(),
    Perceptron(),
    OGD(),
    OGD(loss="squared"),
    StronglyConvexOGD(),
    StronglyConvexOGD(loss="squared", regularization=0.5, radius=10.0),
    LinearizedFTRL(),
    LinearizedFTRL(loss="squared", radius=10.0),
    MirrorDescent(),
    MirrorDescent(loss="absolute"),
    ExponentiatedGradient(scale=10.0, signed=True, feature_bound=200.0),  # the checks' rows have entries around 100
    ExponentiatedGradient(loss="absolute", scale=100.0, signed=True, feature_bound=200.0),
    MirrorDescentAggregator(scale=10.0, domain="octahedron", bound=200.0),
    MirrorDescentAggregator(loss="squared", scale=10.0, domain="octahedron", bound=200.0),
]

ZERO_WEIGHTS = "a row of weight 0 is a row left out, wherever it stands: a block of them is legal and changes nothing"
REPEATED_ROWS = (
    "rows are met one after another: a row of weight 2 is one forecast and one step, the same row twice is two"
)
DEFAULT_SET = "the default of `domain` is a frozen set of regretless.domains, and the check allows plain values alone"
RATE = "the check sets alpha=0.01, which it takes for a regularization: here it is the rate of the steps"
WIDE_BOUND = (
    "steps are those of the theorem for entries of up to 200, which some checks have: 200 rows with entries of up to 4 "
    "hardly move the weights"
)


def expected_failures(estimator: Any) -> dict[str, str]:
    failures = {"check_all_zero_sample_weights_error": ZERO_WEIGHTS}
    learner = getattr(estimator, "base", estimator)
    if not isinstance(learner, VovkAzouryWarmuth):  # ridge regression, whose state does not depend on the order
        failures["check_sample_weight_equivalence_on_dense_data"] = REPEATED_ROWS
    if estimator.__sklearn_tags__().input_tags.sparse:
        failures["check_sample_weight_equivalence_on_sparse_data"] = REPEATED_ROWS
    if isinstance(estimator, MirrorDescent):
        failures["check_parameters_default_constructible"] = DEFAULT_SET
    if is_regressor(estimator) and isinstance(estimator, LinearizedFTRL):
        failures["check_regressors_train"] = RATE
    if is_regressor(estimator) and isinstance(estimator, MirrorDescentAggregator):
        failures["check_regressors_train"] = WIDE_BOUND
    return failures


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


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

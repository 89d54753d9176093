"""scikit-learn's own estimator checks, and the tools around estimators that people use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from noregret import AIOLI, FOLKLORE, GAF, ONS, VovkAzouryWarmuth

ESTIMATORS = [
    AIOLI(),
    FOLKLORE(),
    GAF(),
    ONS(radius=2.0, gamma=0.25, epsilon=1.0),
    ONS(radius=1.0),
    VovkAzouryWarmuth(),
]

ZERO_WEIGHTS = "a row of weight 0 is a row left out, wherever it stands: a block of them is legal and changes nothing"
REPEATED_ROWS = (
    "rows are met one after another: a row of weight 2 is one forecast and one quadratic, the same row twice is two"
)


def expected_failures(estimator: Any) -> dict[str, str]:
    failures = {"check_all_zero_sample_weights_error": ZERO_WEIGHTS}
    if not isinstance(estimator, VovkAzouryWarmuth):  # ridge regression, whose state does not depend on the order
        failures["check_sample_weight_equivalence_on_dense_data"] = REPEATED_ROWS
    return failures


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def shuffled(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize("learner", [FOLKLORE(radius=5.0), GAF(radius=5.0, regularization=0.1)], ids=repr)
def test_in_a_pipeline_under_cross_validation(learner: Any) -> None:
    X, y = shuffled(*load_iris(return_X_y=True))
    names = load_iris().target_names[y]
    assert cross_val_score(make_pipeline(StandardScaler(), learner), X, names, cv=5).mean() > 0.75


def test_in_a_grid_search() -> None:
    X, y = shuffled(*load_diabetes(return_X_y=True))
    grid = {"regularization": [1e-3, 1e-1, 10.0, 1e3]}
    search = GridSearchCV(VovkAzouryWarmuth(), grid, cv=4).fit(X, (y - 150) / 80)
    assert search.best_params_["regularization"] < 1e3
    assert search.score(X, (y - 150) / 80) > 0.4


def test_as_a_calibrated_classifier() -> None:
    X, y = shuffled(*load_iris(return_X_y=True))
    model = CalibratedClassifierCV(AIOLI(radius=5.0), method="sigmoid", cv=3).fit(X[y > 0], y[y > 0])
    assert model.predict_proba(X).shape == (150, 2)

"""Weights by name: coef_ of linear learners, and the effects of the features."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from commands import command
from regretless import (
    AIOLI,
    FOLKLORE,
    FTRL,
    GAF,
    OGD,
    ONS,
    KernelAIOLI,
    MondrianForest,
    OnlineLogisticRegression,
    VovkAzouryWarmuth,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3)) / 2
TWO = (X @ [3.0, -1.0, 0.0] > 0).astype(int)
THREE = np.argmax(X @ rng.normal(size=(3, 3)), axis=1)


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("learner", [ONS(gamma=0.3, epsilon=1.0), OGD(), FTRL()], ids=lambda each: type(each).__name__)
def test_linear_forecasts_are_products_with_coef(learner: Any, labels: np.ndarray) -> None:
    learner = learner.fit(X[:60], labels[:60], classes=np.unique(labels))
    said = learner.decision_function(X)
    found = X @ learner.coef_.T
    if said.ndim == 1:
        np.testing.assert_allclose(found[:, 0], said, atol=1e-12)
    else:  # logits are known up to a constant per row
        np.testing.assert_allclose(
            found - found.mean(axis=1, keepdims=True), said - said.mean(axis=1, keepdims=True), atol=1e-9
        )


@pytest.mark.parametrize(
    ("learner", "labels"),
    [(AIOLI(radius=5.0), TWO), (FOLKLORE(radius=5.0), TWO), (FOLKLORE(radius=5.0), THREE), (GAF(radius=5.0), THREE)],
    ids=["AIOLI", "FOLKLORE", "FOLKLORE-3", "GAF"],
)
def test_forecasts_of_second_order_learners_are_near_those_of_coef(learner: Any, labels: np.ndarray) -> None:
    learner = learner.fit(np.tile(X, (20, 1)), np.tile(labels, 20))
    said = learner.decision_function(X)
    found = X @ learner.coef_.T
    if said.ndim == 1:
        said, found = said[:, None], found[:, :1]
    said = said - said.mean(axis=1, keepdims=True) if said.shape[1] > 1 else said
    assert np.corrcoef(said.ravel(), found.ravel())[0, 1] > 0.99
    assert learner.coef_.shape == ((1, 3) if len(np.unique(labels)) == 2 else (3, 3))


def test_ridge_weights() -> None:
    y = X @ [3.0, -1.0, 0.0]
    learner = VovkAzouryWarmuth(regularization=0.5).fit(X, y)
    np.testing.assert_allclose(learner.coef_[0], np.linalg.solve(X.T @ X + 0.5 * np.eye(3), X.T @ y), atol=1e-9)
    assert [effect.feature for effect in learner.effects(["a", "b", "c"])] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="2 names for 3 features"):
        learner.effects(["a", "b"])


@pytest.mark.parametrize("learner", [MondrianForest(n_estimators=2), KernelAIOLI()], ids=["forest", "kernel"])
def test_learners_without_weights_have_no_effects(learner: Any) -> None:
    learner = learner.fit(X[:30], TWO[:30])
    assert not hasattr(learner, "coef_")
    with pytest.raises(ValueError, match="no weights per feature"):
        learner.effects()


@pytest.mark.parametrize("effort", ["low", "medium"])
def test_effects_of_the_mixture_are_differences_of_its_forecasts(effort: str) -> None:
    learner = OnlineLogisticRegression(effort=effort).fit(X, TWO)
    first = learner.effects()[0]
    assert first.feature == "x0" and first.step.startswith("mean - deviation")
    middle, deviation = X.mean(axis=0), X.std(axis=0)
    ends = np.array([middle, middle])
    ends[:, 0] += [-deviation[0], deviation[0]]
    low, high = learner.decision_function(ends)
    np.testing.assert_allclose(first.change, [high - low], rtol=1e-9)
    np.testing.assert_allclose(learner.coef_[0, 0], (high - low) / (2 * deviation[0]), rtol=1e-9)
    assert learner.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    weakest = learner.effects(["a", "b", "c"])[-1]
    assert weakest.feature == "c" and abs(weakest.change[0]) < abs(first.change[0]) / 5


def test_effects_of_categories_dates_and_missing_values() -> None:
    rows = [
        {"amount": None if i % 10 == 0 else float(i % 7), "country": ("fr", "de", "xx")[i % 3], "vip": i % 2 == 0}
        for i in range(200)
    ]
    labels = ["fraud" if row["country"] == "xx" else "good" for row in rows]
    learner = OnlineLogisticRegression(effort="low").fit(rows, labels)
    names = learner.get_feature_names_out().tolist()
    assert {"amount", "amount is missing", "country = fr", "country = de", "country = xx", "vip"} == set(names)
    first = learner.effects()[0]
    assert first.feature == "country = xx" and first.step == "0 to 1" and first.change[0] < 0  # of "good"
    assert learner.coef_.shape == (1, len(names))


def test_three_classes_have_one_change_each() -> None:
    learner = OnlineLogisticRegression(effort="low").fit(X, THREE)
    assert learner.coef_.shape == (3, 3)
    np.testing.assert_allclose(learner.coef_.sum(axis=0), 0.0, atol=1e-12)


def test_effects_of_sparse_rows() -> None:
    words = [{"good": 1.0, f"w{i % 5}": 1.0} if i % 2 else {"bad": 1.0, "kind": "note"} for i in range(100)]
    learner = OnlineLogisticRegression(sparse=True).fit(words[:50], [i % 2 for i in range(50)])
    learner.partial_fit(words[50:], [i % 2 for i in range(50, 100)])
    by_name = {effect.feature: effect.change[0] for effect in learner.effects()}
    assert by_name["good"] > 0 > by_name["bad"] and "kind = note" in by_name
    wide = sparse.csr_array(([1.0, 1.0], ([0, 1], [7, 100_000])), (2, 2**18))
    columns = {effect.feature for effect in OnlineLogisticRegression().fit(wide, [0, 1]).effects()}
    assert {"column 7", "column 100000"} <= columns
    for too_many in (lambda: learner.coef_, learner.get_feature_names_out):
        with pytest.raises(AttributeError, match=r"too many columns .* use effects\(\)"):
            too_many()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["OnlineLogisticRegression(effort='low')", "AIOLI", "MondrianForest(n_estimators=2)"])
def test_reports_show_the_leading_features(tmp_path: Path, model: str) -> None:
    lines = [f"{a:.4f},2024-01-{1 + t % 28:02d},{'yes' if a > 0 else 'no'}" for t, a in enumerate(X[:100, 0])]
    (tmp_path / "a.csv").write_text("size,day,label\n" + "\n".join(lines) + "\n")
    done = command("run", tmp_path / "a.csv", "--model", model, "--out", tmp_path / "out", "-q")
    assert done.exit_code == 0, done.output
    table = json.loads((tmp_path / "out" / "summary.json").read_text())["leading_features"]
    page = (tmp_path / "out" / "index.html").read_text()
    if "Forest" in model:
        assert table == [] and not (tmp_path / "out" / "features.png").exists() and "Leading" not in page
        return
    assert table[0]["feature"] == "size" and table[0]["change"] > 0 and table[0]["class"] == "yes"
    assert any(row["feature"].startswith("day, ") for row in table)
    assert (tmp_path / "out" / "features.png").read_bytes()[:4] == b"\x89PNG"
    assert "Leading features" in page and "features.png" in page

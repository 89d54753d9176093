"""The scripts of examples/ run as they are, and what they print is sensible."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.base import clone

from regretless import BadRow, NoBound, load, play
from regretless.streams import against_the_forecast

pytestmark = pytest.mark.pages

EXAMPLES = Path("examples")


@pytest.fixture(autouse=True)
def no_window(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))


def printed(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


def test_every_example_is_tested_listed_and_says_how_to_run_it():
    scripts = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    assert {name for name in globals() if name.startswith("test_")} >= {f"test_{name}" for name in scripts}
    for name in scripts:
        assert f"({name}.py)" in (EXAMPLES / "README.md").read_text()
        assert f"python examples/{name}.py" in (EXAMPLES / f"{name}.py").read_text()


def test_click_stream(capsys):
    text = printed("click_stream", capsys)
    assert "columns: device (category), hour (number), age (number), price (number)" in text
    assert re.search(r"rows +4,000\n", text) and "bad rows: 0" in text and "last forecast: no " in text
    assert (
        float(re.search(r"log loss .*row +([\d.]+)", text)[1]) < 0.57
    )  # the base rate's is 0.65, and 0.53 that of who knows the truth and all ages


def test_calibration(capsys):
    text = printed("calibration", capsys)
    loss = {name: float(found) for name, found in re.findall(r"^(\w[\w ]*\w) +log loss ([\d.]+)", text, re.MULTILINE)}
    assert loss["OnlineLogisticRegression"] < 0.6 * loss["best constant"] < loss["SGDClassifier"]


def test_curves_and_trees(capsys):
    text = printed("curves_and_trees", capsys)
    found = re.findall(r"^(\w+) +(effort \w+|forest) +log loss [\d.]+, errors ([\d.]+)%", text, re.MULTILINE)
    errors = {(stream, name): float(share) for stream, name, share in found}
    assert errors["chessboard", "forest"] < errors["chessboard", "effort high"] < errors["chessboard", "effort low"] / 4
    assert errors["ring", "effort high"] < errors["ring", "effort medium"] / 4 < errors["ring", "effort low"] / 4


def data_or_skip(name):
    if not any(path.name.startswith(name) for path in Path(os.environ.get("REGRETLESS_DATA", "nowhere")).glob("*")):
        pytest.skip(f"{name} is not in REGRETLESS_DATA")


def test_electricity(capsys):
    data_or_skip("elec2")
    losses = [float(found) for found in re.findall(r"log loss ([\d.]+)", printed("electricity", capsys))]
    assert losses[1] < 0.9 * losses[0] < 0.2


@pytest.mark.slow
def test_mnist(capsys):
    data_or_skip("mnist")
    late = [float(found) for found in re.findall(r"([\d.]+)% in the last", printed("mnist", capsys))]
    assert late[1] < 4.5 < late[0] < 8.5


def test_delayed_labels(capsys):
    found = re.findall(r"log loss ([\d.]+), of which the delay ([+-][\d.]+)", printed("delayed_labels", capsys))
    losses, costs = zip(*((float(loss), float(cost)) for loss, cost in found), strict=True)
    assert costs[0] == 0.0 < costs[1] < costs[2]
    assert losses[0] < losses[1] < losses[2] < 0.4


def test_keyed_learners(capsys):
    losses = [float(found) for found in re.findall(r"log loss ([\d.]+)", printed("keyed_learners", capsys))]
    one, keyed, pooled = losses
    assert pooled < keyed and pooled < one


@pytest.mark.services
def test_service_client(capsys):
    pytest.importorskip("fastapi", reason="the service is not installed: pip install '.[serve]'")
    text = printed("service_client", capsys)
    assert "400 labels, learned again by a repeat: False" in text
    assert "after the crash: 400 labels, the same loss: True" in text


def test_regret_lecture(capsys):
    text = printed("regret_lecture", capsys)
    assert "follow the leader: 999.0" in text
    alone = [float(found) for found in re.findall(r"radius +[\d.]+: total log loss ([\d.]+)", text)]
    mixed = float(re.search(r"mixture: +total log loss ([\d.]+)", text)[1])
    assert len(alone) == 3 and mixed <= min(alone) + np.log(3) + 0.1  # both are rounded
    assert "wrong on 1000 of 1000 rows" in text


def test_your_own_loss(capsys):
    for quantile, share in re.findall(r"quantile ([\d.]+): ([\d.]+)% of the labels", printed("your_own_loss", capsys)):
        assert abs(float(share) - 100 * float(quantile)) < 2


def test_new_classes(capsys):
    lines = re.findall(r"(\d+) classes, +([\d.]+)% errors", printed("new_classes", capsys))
    assert [int(known) for known, _ in lines] == [5] * 3 + [10] * 6
    errors = [float(share) for _, share in lines]
    assert errors[3] == max(errors[1:])  # the block in which five labels are new; in the first one, five are as well
    assert errors[2] < 5 and max(errors[-2:]) < 6


def test_bandit(capsys):
    rates = dict(re.findall(r"^(\w[\w ]+\w) +([\d.]+)% wrong", printed("bandit", capsys), re.MULTILINE))
    labelled, greedy, theorem = (float(rates[k]) for k in ("with all labels", "EpsilonGreedy", "BanditMulticlass"))
    assert labelled < min(greedy, theorem) and max(greedy, theorem) < 65


def test_adversary(capsys):
    text = printed("adversary", capsys)
    assert text.count("2000 mistakes in 2000 rows") == 2
    rows = [
        [float(number) for number in re.findall(r"-?\d+\.\d+", line)] for line in text.splitlines() if "after" in line
    ]
    assert len(rows) == 6
    for low, high, certificate, bound in rows:
        assert low <= high <= certificate <= bound
    assert rows[2][1] < rows[5][0]  # AIOLI's regret and gradient descent's


def test_your_own_learner(capsys):
    text = printed("your_own_learner", capsys)
    assert "identical results: True" in text
    for line in [line for line in text.splitlines() if "log loss" in line]:
        _, regret, certificate, bound = (float(number) for number in re.findall(r"-?\d+\.\d+", line))
        assert regret <= certificate <= bound


@functools.cache
def own_learner():
    spec = importlib.util.spec_from_file_location("your_own_learner", EXAMPLES / "your_own_learner.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CoinBetting


def test_your_own_learner_keeps_the_promises(tmp_path):
    kind = own_learner()
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 4)) / 2
    y = rng.choice(["a", "b"], size=300)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=300)
    whole, cut, rows = kind(), kind(), kind()
    p = whole.predict_then_learn(X, y)
    parts = [cut.predict_then_learn(X[i], y[i], classes=["a", "b"]) for i in (slice(0, 7), slice(7, 300))]
    for x, label in zip(X, y, strict=True):
        rows.learn_one(x, label, classes=["a", "b"])
    assert (np.concatenate(parts) == p).all()
    for other in (cut, rows):
        assert all((a == b).all() for a, b in zip(whole.state_, other.state_, strict=True))

    whole.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert (loaded.predict_proba(X) == whole.predict_proba(X)).all()
    assert loaded.regret_certificate() == whole.regret_certificate()

    before = [field.copy() for field in whole.state_]
    for bad in (np.full((1, 4), np.nan), np.full((1, 4), 0.6)):  # not a number, and beyond norm 1
        with pytest.raises(BadRow):
            whole.partial_fit(np.concatenate([X[:2], bad]), y[:3])
    assert all((a == b).all() for a, b in zip(whole.state_, before, strict=True))
    with pytest.raises(ValueError, match="wealth"):
        kind(wealth=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="binary"):
        kind().fit(X, np.arange(300) % 3)

    weighted = clone(kind(radius=2.0)).fit(X, y, sample_weight=weight)
    assert weighted.regret_certificate() > 0
    with pytest.raises(NoBound):
        weighted.regret_bound()


def test_the_bound_of_your_own_learner():
    """It is above what the bettor's wealth proves: the largest of |u| x - F(x) + 1, F its least wealth at |G| = x."""
    X = np.full((1, 1), 0.5)
    for n in (1, 2, 10, 100, 10_000):
        x = np.linspace(0, n, 10_001)
        log_wealth = n * np.log(2) + gammaln((n + 1 + x) / 2) + gammaln((n + 1 - x) / 2) - gammaln(n + 1)
        least = np.exp(np.minimum(log_wealth, 700.0)) / np.pi
        for radius in (0.01, 0.1, 1.0, 10.0, 1000.0):
            learner = own_learner()(radius=radius).fit(X, [1], classes=[0, 1])
            assert (radius * x - least + 1).max() <= learner.regret_bound(n)


@pytest.mark.parametrize("radius", [0.1, 1.0, 30.0])
def test_your_own_learner_against_an_adversary(radius):
    trace = play(
        own_learner()(radius=radius), against_the_forecast(300, d=3), classes=[-1, 1], checkpoints=[1, 10, 300]
    )
    for i, (_, high) in enumerate(trace.regret):
        assert high <= trace.certificate[i] <= trace.bound[i]

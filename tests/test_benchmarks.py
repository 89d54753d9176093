"""What the benchmarks compare with is what they say: same forecasts, same updates; and the page keeps its parts."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import cold_start, floors, nonlinear, page
from benchmarks.__main__ import BEGIN, END, markdown
from benchmarks.growth import slope
from benchmarks.machine import describe, in_words
from benchmarks.plain_folklore import PlainFolklore
from benchmarks.quality import Rows
from benchmarks.quality_per_second import curve, seconds_until

from regretless import AIOLI, FOLKLORE
from regretless.learners.logistic.members import names
from regretless.learners.logistic.settings import Settings

SETTINGS = Settings(effort="high")


@pytest.mark.parametrize(("d", "K", "scale"), [(4, 3, 1.0), (3, 2, 1.0), (5, 6, 30.0), (24, 10, 1.0)])
def test_plain_folklore_is_folklore(d, K, scale):
    X, y = floors.a_stream(60, d, K)
    plain = PlainFolklore(d, K).predict_then_learn(scale * X, y)
    ours = FOLKLORE().predict_then_learn(scale * X, y, classes=range(K))
    np.testing.assert_allclose(plain, ours, rtol=0.0, atol=1e-9)


def by_numpy(X, r, shrink):
    """P - U^T U row after row, U = shrink P (I ⊗ x)."""
    P = np.eye(r * X.shape[1])
    for x in X:
        U = shrink * np.kron(np.eye(r), x) @ P
        P -= U.T @ U
    return P


@pytest.mark.parametrize("r", [1, 3])
def test_floors_do_the_product_and_the_update(r):
    X = np.random.default_rng(0).normal(size=(9, 5))
    loops = [floors.plain_one, floors.lazy_one] if r == 1 else [floors.plain_many, floors.lazy_many]
    for loop in loops:
        P, loop = np.eye(r * 5), getattr(loop, "py_func", loop)  # as written: compiling takes seconds
        loop(P, X, 0.3) if r == 1 else loop(P, X, r, 0.3)
        np.testing.assert_allclose(P, by_numpy(X, r, 0.3), rtol=0.0, atol=1e-12)


def test_first_order_floor_is_a_step_of_sgd():
    X, y = floors.a_stream(20, 4, 2)
    w, found = np.zeros(4), np.zeros(4)
    for x, label in zip(X, y, strict=True):
        w += 0.1 * (label - 1 / (1 + np.exp(-w @ x))) * x
    floors.dot_and_step(found, X, y.astype(float), 0.1)
    np.testing.assert_allclose(found, w, rtol=0.0, atol=1e-14)


def test_either_form_can_be_forced(monkeypatch):
    X, y = floors.a_stream(40, 6, 2)
    before, begin, calls, found = floors.panels.pays, floors.panels.begin, [], {}
    monkeypatch.setattr(floors.panels, "begin", lambda *given: calls.append(1) or begin(*given))
    for blocked in (False, True):
        with floors.in_panels(blocked):
            found[blocked] = AIOLI().predict_then_learn(X, y)
        assert bool(calls) is blocked
    assert floors.panels.pays is before
    np.testing.assert_allclose(found[False], found[True], rtol=0.0, atol=1e-12)


def test_slope_and_curves():
    assert slope([10, 20, 40], [3.0, 12.0, 48.0]) == pytest.approx(2.0)
    seconds, counts = np.array([1.0, 2.0, 4.0]), np.array([1, 2, 3])
    p = np.exp([-3.0, -1.0, -0.5])
    assert curve(seconds, counts, p)["loss"] == pytest.approx([3.0, 2.0, 1.5])
    assert seconds_until(seconds, counts, p, 2.0) == 2.0
    assert seconds_until(seconds, counts, p, 1.0) is None


def test_a_page_keeps_its_other_parts(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("# Benchmarks\n\nkept\n")
    page.put(BEGIN, END, ["first"], "## Speed\n", path)
    page.put("<!-- b -->", "<!-- e -->", ["other"], "## Other\n", path)
    page.put(BEGIN, END, ["second"], "## Speed\n", path)
    text = path.read_text()
    assert "first" not in text
    assert [text.index(word) for word in ("kept", "## Speed", "second", "## Other", "other")] == sorted(
        text.index(word) for word in ("kept", "## Speed", "second", "## Other", "other")
    )


def test_cold_start_shows_what_it_counts(monkeypatch):
    scripts = {name: cold_start.SCRIPTS[name] for name in ("Python alone", "import regretless")}
    monkeypatch.setattr(cold_start, "SCRIPTS", {**scripts, "AIOLI, first forecast": "print(0)"})
    monkeypatch.setitem(cold_start.SCRIPTS, "OnlineLogisticRegression, first forecast", "print(0)")
    figures = cold_start.measure(quick=True)
    assert figures["lines"]["AIOLI, first forecast"]["compiled"] == 0
    assert figures["lines"]["Python alone"]["cpu_s"] <= figures["lines"]["Python alone"]["cpu_s_median"]
    machine = describe()
    text = "\n".join(markdown({"d": {"machine": machine, "quick": True, "figures": figures}}))
    assert "import regretless" in text
    assert in_words(machine) in text.replace("\n", " ")


def test_scores_are_those_of_the_true_class():
    rows = Rows(np.zeros((2, 1)), np.array([0, 2]), 3)
    found = nonlinear.score(np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]), rows, seconds=4e-6)
    assert found.loss == pytest.approx((np.log(2.0) - np.log(1e-15)) / 2)
    assert found.smoothed == pytest.approx(-(np.log(0.495 + 0.01 / 3) + np.log(0.01 / 3)) / 2)
    assert (found.error, found.microseconds) == (0.5, pytest.approx(2.0))
    assert found.brier == pytest.approx((0.25 + 2 * 0.0625 + 2.0) / 2)
    np.testing.assert_allclose(nonlinear.normalised(np.array([[0.0, 0.0], [1.0, 3.0]])), [[0.5, 0.5], [0.25, 0.75]])


@pytest.mark.parametrize("kind", nonlinear.KINDS)
def test_a_kind_of_member_is_left_out_with_its_weights(kind):
    everything = SETTINGS.members(6, 3)
    with nonlinear.leaving_out(kind):
        rest = SETTINGS.members(6, 3)
    weights = dict(zip(names(everything, 3), everything.prior.tolist(), strict=True))
    kept = dict(zip(names(rest, 3), rest.prior.tolist(), strict=True))
    assert kept.items() < weights.items()
    first = {"certified": "FOLKLORE", "forest": "Mondrian forest", "stack": "stack of"}.get(kind, kind)
    assert all(name.startswith(first) for name in weights.keys() - kept.keys())
    assert not any(name.startswith(first) for name in kept)
    assert SETTINGS.members(6, 3).total == everything.total


def test_goals_name_the_streams_that_miss_them():
    def line(stream, high_loss, arf_microseconds):
        losses = {"low": 1.0, "medium": 1.0, "high": high_loss, "MondrianForest": 0.8, "ARF": 0.9, "AMF": 0.8}
        times = {"high": 50.0, "ARF": arf_microseconds}
        scores = {name: nonlinear.Score(loss, loss, 0.1, 0.2, times.get(name, 10.0)) for name, loss in losses.items()}
        return nonlinear.Line(stream, 100, 2, 2, scores)

    found = nonlinear.goals([line("good", 0.4, 1000.0), line("bad", 1.2, 100.0)], at_d20=3.0)
    by_name = {goal.figure["what"].split(":")[0]: goal for goal in found}
    losses, slow = (
        by_name["log loss of high below every online rival's"],
        by_name["time of River's ARF over that of high"],
    )
    assert (losses.figure["value"], losses.figure["reached"], losses.missed) == (1, False, ["bad 1.500"])
    assert (slow.figure["value"], slow.missed) == (pytest.approx(2.0), ["bad 2.0"])
    assert by_name["errors of high at most 1.05 times those of River's better forest"].figure["reached"]
    assert "bad 1.500" in "\n".join(nonlinear.misses(found))

"""OneVsRest: by hand, its inequality, its certificate, and what it does with its members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import regretless
from learners import assert_same_state, contents, make_stream, params, through_file, within
from regretless import (
    AIOLI,
    FTRL,
    GAF,
    OGD,
    BadRow,
    Mixture,
    NoBound,
    NoCertificate,
    OneVsRest,
    Perceptron,
    VovkAzouryWarmuth,
    best_in_hindsight,
)
from regretless.core.numbers.tally import LOSS, TALLIES
from regretless.learners.ensembles.one_vs_rest import OneVsRestState, run
from regretless.theory.domains import Ball, Competition, RowBall, WholeSpace

BASES: list[Any] = [AIOLI(radius=2.0), GAF(radius=2.0), OGD(radius=2.0), FTRL(), Mixture([AIOLI(), OGD()], share=0.1)]


@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("K", [2, 4])
def test_the_definition(base: Any, soft: bool, K: int) -> None:
    X, y = make_stream("iid", 40, 3, K, seed=0)
    rng = np.random.default_rng(1)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=40)
    Y = rng.dirichlet(np.ones(K), size=40) if soft else np.eye(K)[y]
    learner = OneVsRest(base)
    said = learner.predict_then_learn(X, Y if soft else y, classes=range(K), sample_weight=weight)
    q, losses = np.empty((40, K)), np.empty(K)
    for k in range(K):
        member = clone(base)
        of_k = np.column_stack([1 - Y[:, k], Y[:, k]])
        q[:, k] = member.predict_then_learn(X, of_k, classes=[False, True], sample_weight=weight)[:, 1]
        losses[k] = member.total_loss_
        assert_same_state(learner.estimators_[k], member)
    p = q / q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(said, p, rtol=1e-11)
    np.testing.assert_allclose(learner.total_loss_, -weight @ (Y * np.log(p)).sum(axis=1), rtol=1e-11)
    np.testing.assert_allclose(learner.state_.losses, losses, rtol=1e-11)
    assert learner.total_loss_ <= losses.sum()
    assert not hasattr(base, "state_")


@settings(max_examples=200)
@given(
    K=st.integers(2, 5), size=st.sampled_from([0.1, 3.0, 50.0, 1e4]), seed=st.integers(0, 2**32 - 1), soft=st.booleans()
)
def test_the_loss_is_at_most_that_of_the_members(K: int, size: float, seed: int, soft: bool) -> None:
    rng = np.random.default_rng(seed)
    logits = size * rng.normal(size=(K, 6, 2))
    Y = rng.dirichlet(np.ones(K), size=6) if soft else np.eye(K)[rng.integers(K, size=6)]
    losses, tally, out = np.zeros(K), np.zeros(TALLIES), np.empty((6, K))
    run(OneVsRestState(losses, tally), logits, Y, np.ones(6), out)
    assert np.isfinite(out).all()
    assert tally[LOSS] <= losses.sum() + 1e-9 * (1 + losses.sum())


@pytest.mark.parametrize("kind", ["iid", "drifting"])
def test_the_certificate_is_above_the_excess_over_the_best_of_each_class(kind: str) -> None:
    X, y = make_stream(kind, 200, 3, 3, seed=2)
    X = within(X, 1.0)
    learner = OneVsRest(AIOLI(radius=2.0)).fit(X, y)
    best = [best_in_hindsight(X, y == k, domain=Ball(2.0), classes=[False, True]).loss for k in range(3)]
    assert learner.total_loss_ - sum(best) <= learner.one_vs_rest_certificate()
    members = learner.state_.losses.sum()
    assert members - sum(best) <= learner.one_vs_rest_certificate()
    assert learner.one_vs_rest_certificate(1.0) < learner.one_vs_rest_certificate()
    with pytest.raises(NoCertificate, match="not proved"):
        learner.regret_certificate()
    with pytest.raises(NoBound, match="FOLKLORE"):
        learner.regret_bound()
    with pytest.raises(NoCertificate):
        learner.one_vs_rest_certificate(10.0)


def test_what_it_is_measured_by() -> None:
    assert OneVsRest(AIOLI(radius=2.0)).competes_with == Competition("softmax", RowBall(2.0))
    assert OneVsRest(FTRL()).competes_with == Competition("softmax", WholeSpace())
    X, y = make_stream("iid", 200, 3, 3, seed=0)
    trace = regretless.play({"it": OneVsRest(AIOLI(radius=2.0))}, X, y)["it"]
    assert trace.regret[-1][1] > 0


@pytest.mark.parametrize("base", BASES, ids=repr)
def test_saved_with_its_members(base: Any, tmp_path: Path) -> None:
    X, y = make_stream("iid", 60, 3, 3, seed=0)
    labels = np.array(["a", "b", "c"])[y]
    learner = OneVsRest(base).fit(X[:30], labels[:30], classes=["a", "b", "c"])
    again = through_file(learner, tmp_path)
    assert params(again) == params(learner)
    assert_same_state(learner, again)
    assert np.array_equal(
        learner.predict_then_learn(X[30:], labels[30:]), again.predict_then_learn(X[30:], labels[30:])
    )
    assert_same_state(learner, again)
    inside = Mixture([OneVsRest(base)]).fit(X, labels)
    assert_same_state(inside, through_file(inside, tmp_path))


def test_sparse_rows_for_those_who_take_them() -> None:
    X, y = make_stream("iid", 60, 3, 3, seed=0)
    dense = OneVsRest(OGD()).fit(X, y)
    assert_same_state(dense, OneVsRest(OGD()).fit(sparse.csr_matrix(X), y))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        OneVsRest(AIOLI()).fit(sparse.csr_matrix(X), y)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (3, "such as AIOLI"),
        (VovkAzouryWarmuth(), "such as AIOLI"),
        (Perceptron(), "has the loss 'hinge'"),
        (OGD(loss="hinge"), "has the loss 'hinge'"),
        (AIOLI(radius=-1.0), "radius=-1.0"),
    ],
    ids=repr,
)
def test_bases_that_are_refused(base: Any, words: str) -> None:
    X, y = make_stream("iid", 20, 3, 3, seed=0)
    learner = OneVsRest(base)
    with pytest.raises(ValueError, match=words):
        learner.fit(X, y)
    assert list(vars(learner)) == ["estimator"]


def test_bad_rows_change_nothing() -> None:
    X, y = make_stream("iid", 20, 3, 3, seed=0)
    learner = OneVsRest(AIOLI(feature_bound=10.0))
    before = contents(learner)
    X[7, 1] = np.nan
    with pytest.raises(BadRow, match="row 7, column 1"):
        learner.fit(X, y)
    assert contents(learner) == before
    learner.fit(X[:7], y[:7], classes=range(3))
    with pytest.raises(BadRow, match="beyond feature_bound"):
        learner.partial_fit(X[8:] * 1e3, y[8:])
    assert learner.set_params(estimator__radius=3.0).get_params()["estimator__radius"] == 3.0

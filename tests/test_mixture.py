"""Mixture: against brute force, its two theorems, its certificate, and what it does with its members."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import regretless
from learners import assert_same_state, contents, fingerprint, make_stream, params, state_bytes, through_file, within
from regretless import (
    AIOLI,
    FOLKLORE,
    FTRL,
    GAF,
    OGD,
    ONS,
    BadRow,
    ExponentiatedGradient,
    KernelAIOLI,
    LinearizedFTRL,
    MirrorDescent,
    Mixture,
    NoBound,
    NoCertificate,
    Perceptron,
    StronglyConvexOGD,
    VovkAzouryWarmuth,
    best_in_hindsight,
    bounds,
)
from regretless.core.numbers.tally import TALLIES
from regretless.learners.ensembles.mixture import MixtureConstants, MixtureState, run
from regretless.theory.domains import Ball, Box, Competition, RowBall, WholeSpace

TWO: list[Any] = [AIOLI(radius=2.0), ONS(radius=1.0), OGD(radius=3.0), FTRL(), KernelAIOLI(gamma=0.5), GAF(radius=1.0)]
MANY: list[Any] = [FOLKLORE(radius=2.0), FTRL(regularization=0.2, radius=1.0), LinearizedFTRL(), MirrorDescent()]


def cross_entropies(P: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Of forecasts (..., n, K) and label distributions (n, K)."""
    return -np.where(Y > 0, Y * np.log(P), 0.0).sum(axis=-1)


def brute_force(
    P: np.ndarray, Y: np.ndarray, weight: np.ndarray, prior: np.ndarray, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """The forecasts of the mixture and its last weights, from those of the members, (N, n, K)."""
    w, mixed = prior, np.empty(Y.shape)
    for t in range(len(Y)):
        mixed[t] = w @ P[:, t]
        if weight[t] > 0:
            loss = weight[t] * cross_entropies(P[:, t], Y[t])
            w = w * np.exp(-(loss - loss.min()))
            w = (1 - share) * (w / w.sum()) + share * prior
    return mixed, w


@pytest.mark.parametrize("learners", [TWO, MANY], ids=["two classes", "three"])
@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("soft", [False, True])
def test_the_definition(learners: list[Any], share: float, soft: bool) -> None:
    K = 2 if learners is TWO else 3
    X, y = make_stream("drifting", 60, 3, K, seed=0)
    rng = np.random.default_rng(1)
    prior = rng.dirichlet(np.ones(len(learners)))
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=60)
    Y = softmax(rng.normal(size=(60, K)), axis=1) if soft else np.eye(K)[y]
    given = {"y": Y if soft else y, "classes": range(K), "sample_weight": weight}
    P = np.array([clone(learner).predict_then_learn(X, **given) for learner in learners])
    mixture = Mixture(learners, prior=prior.tolist(), share=share)
    mixed, w = brute_force(P, Y, weight, prior, share)
    np.testing.assert_allclose(mixture.predict_then_learn(X, **given), mixed, rtol=1e-12)
    np.testing.assert_allclose(mixture.weights_, w, rtol=1e-11)
    np.testing.assert_allclose(mixture.state_.losses, cross_entropies(P, Y) @ weight, rtol=1e-12)
    np.testing.assert_allclose(mixture.total_loss_, weight @ cross_entropies(mixed, Y), rtol=1e-12)
    for member, learner in zip(mixture.estimators_, learners, strict=True):
        assert_same_state(member, clone(learner).partial_fit(X, **given))  # as if it were alone


# ---------------------------------------------------------------------- the theorems


def soft_or_hard(draw: Any, K: int) -> np.ndarray:
    if draw(st.booleans()):
        return np.eye(K)[draw(st.integers(0, K - 1))]
    shares = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=K, max_size=K)))
    return shares / shares.sum()


@st.composite
def games(draw: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What members say, labels, weights up to 1, and a prior."""
    N, n, K = draw(st.integers(1, 4)), draw(st.integers(1, 12)), draw(st.integers(2, 3))
    seed, size = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([0.1, 3.0, 50.0, 1e4]))
    rng = np.random.default_rng(seed)
    Y = np.array([soft_or_hard(draw, K) for _ in range(n)])
    weight = np.array(draw(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=n, max_size=n)))
    return size * rng.normal(size=(N, n, K)), Y, weight, rng.dirichlet(np.ones(N)) * 0.99 + 0.01 / N


def mix(
    logits: np.ndarray, Y: np.ndarray, weight: np.ndarray, prior: np.ndarray, share: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss of the mixture, losses of the members and last log weights."""
    state = MixtureState(np.log(prior), np.zeros(len(prior)), np.zeros(TALLIES))
    run(state, logits.copy(), Y, weight, MixtureConstants(np.log(prior), share), np.empty(Y.shape))
    return float(state[2][2]), state[1], state[0]


@settings(max_examples=200)
@given(game=games())
def test_the_loss_is_at_most_that_of_a_member_plus_its_price(game: Any) -> None:
    loss, losses, log_weight = mix(*game, share=0.0)
    assert np.isfinite(log_weight).all()
    for suffered, prior in zip(losses, game[3], strict=True):
        assert loss <= suffered + bounds.mixture(prior=prior) + 1e-9 * (1 + suffered)


def best_sequence(losses: np.ndarray, switches: int) -> float:
    """The least loss of a sequence of members that changes at most so often; `losses` is (N, n)."""
    best = np.full((switches + 1, len(losses)), np.inf)
    best[0] = 0.0
    for loss in losses.T:
        moved = np.vstack([np.full(len(losses), np.inf), np.tile(best[:-1].min(axis=1)[:, None], len(losses))])
        best = np.minimum(best, moved) + loss
    return float(best.min())


@settings(max_examples=100)
@given(game=games(), share=st.sampled_from([0.001, 0.1, 0.9]), switches=st.integers(0, 11))
def test_the_loss_is_at_most_that_of_a_sequence_plus_its_price(game: Any, share: float, switches: int) -> None:
    logits, Y, weight, _ = game
    logits, Y, weight = logits[:, weight > 0], Y[weight > 0], weight[weight > 0]
    N, n = logits.shape[:2]
    if switches >= max(n, 1):
        return
    loss, _, log_weight = mix(logits, Y, weight, np.full(N, 1 / N), share)
    log_p = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
    suffered = -(Y * log_p).sum(axis=2) * weight
    best = best_sequence(suffered, switches)
    price = bounds.fixed_share(n, switches=switches, n_members=N, share=share)
    assert loss <= best + price + 1e-9 * (1 + best)
    assert log_weight.min() >= np.log(share / N) - 1e-12 or n == 0


def test_rows_of_weight_above_1_may_cost_more() -> None:
    """p^c is concave in p only for c <= 1: the theorems are not about heavier rows."""
    sure = np.array([[[-40.0, 40.0]], [[40.0, -40.0]]])
    loss, losses, _ = mix(sure, np.array([[0.0, 1.0]]), np.array([2.0]), np.array([0.5, 0.5]), 0.0)
    assert loss - losses.min() == pytest.approx(2 * np.log(2))


@pytest.mark.parametrize("against", ["random", "the forecast"])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_member_is_at_most_ln_n_better(against: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3)) * rng.choice([0.1, 1.0, 10.0], size=(80, 1))
    mixture = Mixture([AIOLI(radius=r) for r in (0.1, 1.0, 10.0)] + [OGD(radius=5.0)])
    mixture.partial_fit(X[:1], [0], classes=[0, 1])
    for x in X[1:]:
        y = rng.integers(2) if against == "random" else int(np.argmin(mixture.predict_proba_one(x)))
        mixture.learn_one(x, y)
    assert mixture.total_loss_ <= mixture.state_.losses.min() + np.log(4)
    own = [member.total_loss_ for member in mixture.estimators_]
    np.testing.assert_allclose(mixture.state_.losses, own, rtol=1e-12)


def test_sharing_follows_a_change_and_beats_every_member() -> None:
    """First the labels are plain, and large weights are good; then they are coins, and none are."""
    rng = np.random.default_rng(0)
    n = 600
    X = rng.normal(size=(n, 2))
    y = np.where(np.arange(n) < n // 2, X[:, 0] > 0, rng.random(n) < 0.5).astype(int)
    learners = [AIOLI(radius=20.0), AIOLI(radius=1e-3)]
    P = np.array([clone(learner).predict_then_learn(X, y) for learner in learners])
    losses = cross_entropies(P, np.eye(2)[y])
    shared, still = Mixture(learners, share=1 / n).fit(X, y), Mixture(learners).fit(X, y)
    assert shared.total_loss_ < losses.sum(axis=1).min() - 20
    assert shared.total_loss_ < still.total_loss_ - 20
    for switches in range(4):
        best = best_sequence(losses, switches)
        assert shared.total_loss_ <= best + bounds.fixed_share(n, switches=switches, n_members=2, share=1 / n)
    assert best_sequence(losses, 1) < losses.sum(axis=1).min() - 50
    with pytest.raises(NoBound, match="fixed_share"):
        shared.regret_bound()


def test_a_hopeless_member_is_never_nan() -> None:
    X, y = np.tile([[30.0, 0.0]], (400, 1)), np.ones(400, dtype=int)
    bad = FOLKLORE(radius=1e-6, regularization=1e6)
    mixture = Mixture([bad, AIOLI(radius=5.0)], share=0.0).fit(np.vstack([X, X]), np.tile(y, 2), classes=[0, 1])
    assert mixture.state_.log_weight[0] < -400
    mixture.partial_fit(X, 0 * y)
    assert np.isfinite(mixture.state_.log_weight).all()
    assert np.isfinite(mixture.predict_proba(X)).all()


# ---------------------------------------------------------------------- what it promises


PROMISES: dict[str, tuple[Mixture, int, Competition]] = {
    "balls": (Mixture([AIOLI(radius=1.0), AIOLI(radius=4.0)]), 2, Competition("logistic", Ball(4.0))),
    "shared": (Mixture([AIOLI(radius=1.0), OGD(radius=4.0)], share=0.1), 2, Competition("logistic", Ball(4.0))),
    "rows": (Mixture([FOLKLORE(radius=0.5), FOLKLORE(radius=2.0)]), 3, Competition("softmax", RowBall(2.0))),
    "nested": (
        Mixture([Mixture([AIOLI(radius=1.0), AIOLI(radius=2.0)]), AIOLI(radius=0.5)], [0.9, 0.1]),
        2,
        Competition("logistic", Ball(2.0)),
    ),
}


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.parametrize("kind", ["iid", "drifting"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_certificate_is_above_the_true_regret(name: str, kind: str, weighted: bool) -> None:
    mixture, K, competition = PROMISES[name]
    X, y = make_stream(kind, 200, 3, K, seed=3)
    X = within(X, 1.0)
    weight = np.random.default_rng(4).choice([0.0, 0.5, 1.0, 5.0], size=200) if weighted else np.ones(200)
    learner = clone(mixture).fit(X, y, sample_weight=weight)
    assert mixture.competes_with == learner.competes_with == competition
    given = {"loss": competition.loss, "sample_weight": weight, "classes": range(K)}
    best = best_in_hindsight(X, y, domain=competition.domain, **given)
    assert learner.total_loss_ - best.loss <= learner.regret_certificate()
    if not weighted and not learner.share:
        assert learner.regret_certificate() <= learner.regret_bound()
    for norm in (0.25, 0.5, 1.0, 2.0):
        near = best_in_hindsight(X, y, domain=Ball(norm), **given)
        certificate = learner.regret_certificate(norm)
        assert learner.total_loss_ - near.loss <= certificate <= learner.regret_certificate() + 1e-9
    with pytest.raises(NoCertificate, match="no member has a certificate"):
        learner.regret_certificate(10.0)


def test_a_small_ball_is_the_business_of_all_whose_set_holds_it() -> None:
    X, y = make_stream("iid", 200, 3, 2, seed=0)
    learner = Mixture([AIOLI(radius=1.0), AIOLI(radius=4.0), FTRL()]).fit(X, y)
    assert learner.competes_with.domain == WholeSpace()
    more = learner.total_loss_ - learner.state_.losses
    for norm, who in ((0.5, [0, 1, 2]), (1.0, [0, 1, 2]), (1.1, [1, 2]), (4.1, [2])):
        own = [learner.estimators_[i].regret_certificate(norm) + more[i] for i in who]
        assert learner.regret_certificate(norm) == min(own)
    with pytest.raises(NoCertificate, match="give comparator_norm"):
        learner.regret_certificate()
    with pytest.raises(NoBound, match="give comparator_norm"):
        learner.regret_bound()
    with pytest.raises(ValueError, match="comparator_norm"):
        learner.regret_certificate(-1.0)


def test_a_row_beyond_a_members_row_ball_is_not_its_business() -> None:
    """A matrix of Frobenius norm 1 may have a row of norm 1, which RowBall(0.8) has not."""
    X, y = make_stream("iid", 100, 3, 3, seed=0)
    learner = Mixture([FOLKLORE(radius=0.8), FOLKLORE(radius=2.0)]).fit(X, y)
    more = learner.total_loss_ - learner.state_.losses[1]
    assert learner.estimators_[0].regret_certificate(1.0) > 0
    assert learner.regret_certificate(1.0) == learner.estimators_[1].regret_certificate(1.0) + more


@pytest.mark.parametrize(
    ("learners", "words"),
    [
        ([AIOLI(), FOLKLORE()], "weights of the margin"),
        ([OGD(radius=1.0), LinearizedFTRL(radius=1.0)], r"Ball\(radius=1.0\) and Box\(radius=1.0\)"),
        ([AIOLI(), KernelAIOLI()], "its own features"),
        ([AIOLI(), StronglyConvexOGD(loss="logistic", regularization=0.1)], "regularized in every row"),
        ([AIOLI(), Mixture([KernelAIOLI()])], "its own features"),
    ],
    ids=lambda value: None if isinstance(value, list) else value,
)
def test_members_of_different_kinds_have_no_certificate(learners: list[Any], words: str) -> None:
    X, y = make_stream("iid", 50, 3, 2, seed=0)
    learner = Mixture(learners).fit(X, y)
    assert learner.competes_with == learner.estimators_[0].competes_with
    with pytest.raises(NoCertificate, match=words):
        learner.regret_certificate()
    with pytest.raises(NoBound, match=words):
        learner.regret_bound()


def test_a_member_without_a_certificate_leaves_it_to_others() -> None:
    X, y = make_stream("iid", 50, 3, 2, seed=0)
    without = [ONS(radius=2.0, gamma=0.5, epsilon=0.5), Mixture([AIOLI(radius=2.0), FOLKLORE()])]
    learner = Mixture([*without, AIOLI(radius=2.0)]).fit(X, y)
    for member in learner.estimators_[:2]:
        with pytest.raises(NoCertificate):
            member.regret_certificate()
    more = learner.total_loss_ - learner.state_.losses[2]
    assert learner.regret_certificate() == learner.estimators_[2].regret_certificate() + more
    with pytest.raises(NoCertificate, match=r"no member has a certificate.*not proved"):
        Mixture(without[:1]).fit(X, y).regret_certificate()


def test_equal_sets_of_other_kinds_are_common() -> None:
    X, y = make_stream("iid", 50, 3, 2, seed=0)
    learner = Mixture([LinearizedFTRL(radius=1.0), LinearizedFTRL(alpha=0.5, radius=1.0)]).fit(X, y)
    assert learner.competes_with.domain == Box(1.0)
    best = best_in_hindsight(X, y, domain=Box(1.0))
    assert learner.total_loss_ - best.loss <= learner.regret_certificate()


def test_it_plays() -> None:
    X, y = make_stream("iid", 200, 3, 2, seed=0)
    trace = regretless.play({"mixture": Mixture([AIOLI(radius=1.0), AIOLI(radius=4.0)])}, X, y)["mixture"]
    assert trace.regret[-1][1] <= trace.certificate[-1] <= trace.bound[-1]


# ---------------------------------------------------------------------- members


def test_an_error_of_one_member_changes_nothing_in_any() -> None:
    X, y = make_stream("iid", 50, 3, 2, seed=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    learner = Mixture([FTRL(), KernelAIOLI(gamma=0.5), AIOLI(), AIOLI(feature_bound=1.0)]).fit(X, y)
    before = fingerprint(learner), state_bytes(learner)
    bad = np.vstack([X, [[1.5, 0.0, 0.0]]])
    for call in (learner.partial_fit, learner.predict_then_learn, learner.fit):
        with pytest.raises(BadRow, match=r"row 50: .* beyond feature_bound"):
            call(bad, np.append(y, 1))
    with pytest.raises(BadRow, match="row 3: label"):
        learner.partial_fit(X, np.where(np.arange(50) == 3, 7, y))
    with pytest.raises(BadRow, match="feature_bound"):
        learner.learn_one(bad[-1], 1)
    with pytest.raises(BadRow, match="feature_bound"):
        learner.predict_proba(bad)
    assert (fingerprint(learner), state_bytes(learner)) == before


def test_the_learners_given_are_not_touched() -> None:
    X, y = make_stream("iid", 50, 3, 2, seed=0)
    mine = AIOLI(radius=2.0)
    before = fingerprint(mine)
    learner = Mixture((mine, mine)).fit(X, y)
    assert fingerprint(mine) == before
    assert learner.estimators == (mine, mine)
    assert learner.estimators_[0] is not learner.estimators_[1]
    learned = AIOLI(radius=2.0).fit(X, y)
    assert_same_state(Mixture([learned]).fit(X, y).estimators_[0], learned)  # a member begins anew


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (VovkAzouryWarmuth(), r"estimators\[1\].*classifiers"),
        (Perceptron(), r"estimators\[1\].*'hinge'.*log loss"),
        (OGD(loss="hinge"), r"estimators\[1\].*'hinge'"),
        (OGD(loss="squared"), r"estimators\[1\].*'squared'"),
        (OGD(loss="logit"), r"estimators\[1\].*'logit'"),
        (ExponentiatedGradient(loss="absolute"), r"estimators\[1\].*'absolute'"),
        (AIOLI, r"estimators\[1\].*classifiers"),
        (AIOLI(radius=-1.0), "radius=-1.0"),
    ],
    ids=repr,
)
def test_what_cannot_be_mixed_is_refused(learner: Any, words: str) -> None:
    X, y = make_stream("iid", 50, 3, 2, seed=0)
    mixture = Mixture([AIOLI(), learner])
    with pytest.raises(ValueError, match=words):
        mixture.fit(X, y)
    assert contents(mixture) == params(mixture)
    assert mixture.get_params()["estimator1"] is learner


def test_what_cannot_be_mixed_may_show_with_the_classes() -> None:
    X, y = make_stream("iid", 50, 3, 3, seed=0)
    with pytest.raises(ValueError, match=r"estimators\[0\].*'multiclass hinge'"):
        Mixture([OGD(multiclass="hinge")]).fit(X, y)
    with pytest.raises(ValueError, match=r"binary.*3 here"):
        Mixture([FOLKLORE(), AIOLI()]).fit(X, y)
    Mixture([OGD(multiclass="hinge")]).fit(X, y > 0)


def test_sparse_rows_are_taken_where_all_members_take_them() -> None:
    X, y = make_stream("iid", 50, 6, 2, seed=0)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    learner = Mixture([OGD(), LinearizedFTRL()])
    p = learner.predict_then_learn(sparse.csr_matrix(X), y)
    dense = clone(learner)
    assert np.array_equal(p, dense.predict_then_learn(X, y))
    assert_same_state(learner, dense)
    with pytest.raises(TypeError, match="dense data is required"):
        Mixture([OGD(), AIOLI()]).fit(sparse.csr_matrix(X), y)


def test_names_reach_the_members_parameters() -> None:
    learner = Mixture([AIOLI(radius=1.0), Mixture([AIOLI(radius=2.0)])])
    assert learner.get_params()["estimator0__radius"] == 1.0
    assert learner.get_params()["estimator1__estimator0__radius"] == 2.0
    learner.set_params(estimator0=OGD(), estimator1__estimator0__radius=5.0, share=0.1)
    assert isinstance(learner.estimators[0], OGD)
    assert learner.estimators[1].estimators[0].radius == 5.0
    learner.set_params(estimators=[AIOLI()], estimator0__radius=7.0)
    assert learner.estimators[0].radius == 7.0
    for unknown in ("estimator1", "estimator0__momentum", "momentum"):
        with pytest.raises(ValueError, match="Invalid parameter"):
            learner.set_params(**{unknown: 1.0})
    X, y = make_stream("iid", 100, 3, 2, seed=0)
    search = GridSearchCV(Mixture([AIOLI(), OGD()]), {"estimator0__radius": [1e-3, 3.0], "share": [0.0, 0.1]}, cv=2)
    assert search.fit(X, y).best_estimator_.estimators_[0].radius in (1e-3, 3.0)


# ---------------------------------------------------------------------- files


def nested() -> Mixture:
    inner = Mixture((FTRL(), MirrorDescent(domain=Ball(2.0), gradient_bound=2.0)), prior=np.array([0.3, 0.7]))
    return Mixture([inner, KernelAIOLI(gamma=0.5), AIOLI(radius=2.0)], share=0.05)


def test_nested_mixtures_go_on_from_a_file(tmp_path: Path) -> None:
    X, y = make_stream("drifting", 80, 3, 2, seed=0)
    names = np.array(["no", "yes"])[y]
    learner = nested().fit(X[:50], names[:50])
    copy = through_file(learner, tmp_path)
    assert copy.classes_.tolist() == ["no", "yes"]
    assert_same_state(copy, learner)
    after = learner.predict_then_learn(X[50:], names[50:])
    assert np.array_equal(copy.predict_then_learn(X[50:], names[50:]), after)
    assert_same_state(copy, learner)
    learner.save(tmp_path / "a.npz")
    copy.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert "estimators.0.estimators.1.state.theta.npy" in zipfile.ZipFile(tmp_path / "a.npz").namelist()
    again = clone(copy).fit(X, names)  # the recipe is in the file too
    assert_same_state(again, copy)


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> Path:
    """The file with something changed in it."""
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        arrays = {name[:-4]: np.load(io.BytesIO(archive.read(name))) for name in names}
    change(header, arrays)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    return path


def spoil_member(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["estimators.2.state.P"][0, 0] = np.nan


DAMAGES: dict[str, tuple[Callable[[dict[str, Any], dict[str, np.ndarray]], Any], str]] = {
    "nothing": (lambda header, arrays: None, ""),
    "NaN in a member": (spoil_member, "is damaged: estimators.2.state 'P'"),
    "no array of a member": (lambda header, arrays: arrays.pop("estimators.0.estimators.0.state.w"), "is damaged"),
    "a member less": (lambda header, arrays: header["holds"]["estimators"].pop(), "is damaged: state 'log_weight'"),
    "no members": (lambda header, arrays: header.pop("holds"), "is damaged"),
    "a stranger": (lambda header, arrays: header["holds"]["estimators"][0].update(learner="Oracle"), "'Oracle'"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused(damage: str, tmp_path: Path) -> None:
    X, y = make_stream("iid", 30, 3, 2, seed=0)
    nested().fit(X, y).save(tmp_path / "model.npz")
    change, words = DAMAGES[damage]
    path = rewritten(tmp_path / "model.npz", change)
    if not words:
        regretless.load(path)
        return
    with pytest.raises(ValueError, match=words):
        regretless.load(path)

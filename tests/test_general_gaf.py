"""GeneralGAF: GAF for any mixable loss, against its definition; and the assumptions of the losses that it has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import regretless
from regretless import GAF, BadRow, GeneralGAF, NoBound, VovkAzouryWarmuth, bounds, mixable
from regretless.learners.second_order.mixable import LogCoshLoss, MixableLoss, SoftmaxLoss, SquaredLoss


def stream(n: int, d: int, m: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.tanh(X[:, :1] @ np.ones((1, m)) + rng.normal(size=(n, m)))
    return X / np.linalg.norm(X, axis=1, keepdims=True), Y[:, 0] if m == 1 else Y


# ---------------------------------------------------------------------- against other learners and the definition


@pytest.mark.parametrize("m", [1, 3])
def test_with_the_squared_loss_it_is_vovk(m: int) -> None:
    X, Y = stream(80, 4, m)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], size=80)
    general = GeneralGAF(SquaredLoss(target_bound=2.0), regularization=0.3)
    vovk = VovkAzouryWarmuth(regularization=0.3)
    said = general.predict_then_learn(X, Y, sample_weight=weight)
    assert np.abs(said - vovk.predict_then_learn(X, Y, sample_weight=weight)).max() < 1e-12
    assert np.abs(general.predict(X) - vovk.predict(X)).max() < 1e-12
    assert general.regret_certificate(2.0) == pytest.approx(vovk.regret_certificate(2.0), abs=1e-6)


def test_with_the_softmax_loss_it_is_gaf() -> None:
    X, _ = stream(60, 3)
    y = np.random.default_rng(2).integers(3, size=60)
    special = GAF(radius=2.0, regularization=0.5, curvature="sharp")
    p = special.predict_then_learn(X, y, classes=[0, 1, 2])
    general = GeneralGAF(SoftmaxLoss(), radius=2.0, regularization=0.5)
    logits = general.predict_then_learn(X, np.eye(3)[y])
    assert np.abs(np.exp(logits) - p).max() < 1e-9
    assert general.regret_certificate() == pytest.approx(special.regret_certificate(), abs=1e-8)


def by_definition(loss: MixableLoss, X: np.ndarray, Y: np.ndarray, radius: float, lam: float) -> np.ndarray:
    """The algorithm as printed: theta by minimising sums of quadratics and one loss, forecasts by `loss.forecast`."""
    d, m = X.shape[1], Y.shape[1]
    A, b, said = lam * np.eye(m * d), np.zeros(m * d), []
    for x, y in zip(X, Y, strict=True):
        Phi = np.kron(np.eye(m), x).T  # (m d, m): scores are Phi' theta
        theta = np.linalg.solve(A, b)
        covariance = Phi.T @ np.linalg.inv(A) @ Phi / (2 * loss.alpha(m))
        said.append(loss.forecast(Phi.T @ theta, covariance))

        def total(v: np.ndarray, A=A, b=b, Phi=Phi, y=y) -> float:
            return v @ A @ v - 2 * b @ v + loss.value(Phi.T @ v, y)

        def slope(v: np.ndarray, A=A, b=b, Phi=Phi, y=y) -> np.ndarray:
            return 2 * A @ v - 2 * b + Phi @ loss.gradient(Phi.T @ v, y)

        theta = optimize.minimize(total, theta, jac=slope, method="BFGS", options={"gtol": 1e-13}).x
        for _ in range(3):  # Newton's steps, to the last digits
            H = 2 * A + Phi @ loss.hessian(Phi.T @ theta, y) @ Phi.T
            theta = theta - np.linalg.solve(H, slope(theta))
        half = loss.beta(radius * np.linalg.norm(x)) / 2 * Phi @ loss.hessian(Phi.T @ theta, y) @ Phi.T
        A, b = A + half, b - Phi @ loss.gradient(Phi.T @ theta, y) / 2 + half @ theta
    return np.array(said)


@pytest.mark.parametrize("m", [1, 2])
def test_log_cosh_is_its_definition(m: int) -> None:
    X, Y = stream(40, 3, m, seed=3)
    loss = LogCoshLoss(scale=0.7, target_bound=1.0)
    said = GeneralGAF(loss, radius=2.0, regularization=0.2).predict_then_learn(X, Y)
    reference = by_definition(loss, X, Y.reshape(40, m), 2.0, 0.2)
    assert np.abs(said.reshape(40, m) - reference).max() < 1e-9


class Plain(MixableLoss):
    """Log-cosh of scale 1, written by a user."""

    def value(self, z: np.ndarray, y: np.ndarray) -> float:
        return float(np.log(np.cosh(z - y)).sum())

    def gradient(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.tanh(z - y)

    def hessian(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.diag(1 / np.cosh(z - y) ** 2)

    def forecast(self, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        return LogCoshLoss().forecast(mean, covariance)

    def alpha(self, n_outputs: int) -> float:
        return LogCoshLoss().alpha(n_outputs)

    def beta(self, largest_score: float) -> float:
        return LogCoshLoss().beta(largest_score)

    def zeta(self) -> float:
        return LogCoshLoss().zeta()

    def gamma(self) -> float:
        return 1.0


def test_a_users_loss_is_played_like_ours(tmp_path: Any) -> None:
    X, Y = stream(50, 3, 2, seed=4)
    ours = GeneralGAF(LogCoshLoss(), radius=2.0)
    theirs = GeneralGAF(Plain(), radius=2.0)
    assert np.abs(ours.predict_then_learn(X, Y) - theirs.predict_then_learn(X, Y)).max() < 1e-12
    assert theirs.regret_certificate() == pytest.approx(ours.regret_certificate(), rel=1e-9)
    assert theirs.regret_bound() == ours.regret_bound()
    with pytest.raises(ValueError, match="cannot be saved"):
        theirs.save(tmp_path / "model.npz")
    ours.save(tmp_path / "model.npz")
    again = regretless.load(tmp_path / "model.npz")
    assert np.array_equal(again.predict(X), ours.predict(X))
    assert again.loss == LogCoshLoss()


# ---------------------------------------------------------------------- the assumptions

LOSSES = [
    (SquaredLoss(target_bound=1.5), 1),
    (SquaredLoss(target_bound=1.0), 3),
    (LogCoshLoss(), 1),
    (LogCoshLoss(scale=0.5, target_bound=0.4), 2),
    (SoftmaxLoss(), 2),
    (SoftmaxLoss(), 3),
]


def targets(loss: MixableLoss, m: int, rng: np.random.Generator) -> np.ndarray:
    if isinstance(loss, SoftmaxLoss):
        return np.eye(m)[rng.integers(m)]
    y = rng.uniform(-1, 1, size=m)
    return loss.target_bound * (y / max(1.0, np.linalg.norm(y)) if isinstance(loss, SquaredLoss) else y)


@pytest.mark.parametrize(("loss", "m"), LOSSES)
def test_gradients_and_hessians_are_derivatives(loss: MixableLoss, m: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        z, y, h = 2 * rng.normal(size=m), targets(loss, m, rng), 1e-5
        steps = h * np.eye(m)
        g = [(loss.value(z + e, y) - loss.value(z - e, y)) / (2 * h) for e in steps]
        H = [(loss.gradient(z + e, y) - loss.gradient(z - e, y)) / (2 * h) for e in steps]
        assert np.abs(loss.gradient(z, y) - g).max() < 1e-8
        assert np.abs(loss.hessian(z, y) - H).max() < 1e-8


@pytest.mark.parametrize(("loss", "m"), LOSSES)
def test_the_quadratics_lie_between(loss: MixableLoss, m: int) -> None:
    """(A2), (A3) and (A4), on random pairs of points, near and far."""
    rng = np.random.default_rng(1)
    for _ in range(600):
        C = rng.choice([0.5, 2.0, 6.0])
        a = rng.normal(size=m)
        a *= C * rng.uniform() ** (1 / m) / np.linalg.norm(a)
        b, y = rng.choice([0.3, 3.0, 10.0]) * rng.normal(size=m), targets(loss, m, rng)
        gap, H = a - b, loss.hessian(b, y)
        above = loss.value(a, y) - loss.value(b, y) - loss.gradient(b, y) @ gap
        bend = gap @ H @ gap
        assert above >= 0.5 * loss.beta(C) * bend - 1e-9
        assert above <= np.exp(min(loss.zeta() * gap @ gap, 500.0)) * bend + 1e-9 or bend < 1e-300
        assert np.linalg.eigvalsh(H).max() <= loss.gamma() * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "m"), LOSSES)
def test_the_forecast_mixes(loss: MixableLoss, m: int) -> None:
    """(A1), for Gaussians over the scores: of any covariance, but q I for the squared loss, as in the game."""
    rng = np.random.default_rng(2)
    nodes, shares = np.polynomial.hermite_e.hermegauss([0, 60, 20, 10][m])
    points = np.stack(np.meshgrid(*[nodes] * m), axis=-1).reshape(-1, m)
    share = np.prod(np.stack(np.meshgrid(*[shares] * m), axis=-1).reshape(-1, m), axis=1) / np.sqrt(2 * np.pi) ** m
    alpha = loss.alpha(m)
    for _ in range(6):
        mean, root = rng.normal(size=m), rng.uniform(0.05, 1.0) * np.eye(m)
        if not isinstance(loss, SquaredLoss):
            root = root @ rng.normal(size=(m, m)) / m
        score = loss.forecast(mean, root @ root.T)
        for _ in range(3):
            y = targets(loss, m, rng)
            mixed = share @ [np.exp(-alpha * loss.value(mean + root @ u, y)) for u in points]
            assert loss.value(score, y) <= -np.log(mixed) / alpha + 1e-4


def test_the_clipped_mean_is_an_integral() -> None:
    for mean, deviation in [(0.3, 0.7), (-4.0, 1.0), (0.0, 30.0), (0.9, 1e-14), (5.0, 0.1)]:
        exact = mean
        if deviation > 1e-9:
            exact = integrate.quad(
                lambda u, a=mean, s=deviation: float(np.clip(a + s * u, -1, 1)) * stats.norm.pdf(u),
                -12,
                12,
                epsabs=1e-13,
                points=[(-1 - mean) / deviation, (1 - mean) / deviation],
                limit=400,
            )[0]
        assert LogCoshLoss().forecast([mean], [[deviation**2]])[0] == pytest.approx(np.clip(exact, -1, 1), abs=1e-10)


def test_huber_is_not_mixable() -> None:
    """Between two targets whose straight parts overlap, the mixture of two forecasts beats every single one on both."""
    delta, Y, a = 0.5, 2.0, 1.0

    def huber(z: Any, y: float) -> Any:
        u = np.abs(z - y)
        return np.where(u <= delta, u**2 / 2, delta * (u - delta / 2))

    scores = np.linspace(-Y, Y, 2001)
    for alpha in (1e-3, 0.1, 1.0, 10.0):
        short = []
        for y in (-Y, Y):
            mixed = -np.log(np.mean(np.exp(-alpha * huber(np.array([-a, a]), y)))) / alpha
            short.append(huber(scores, y) - mixed)
        assert np.maximum(*short).min() > 0


# ---------------------------------------------------------------------- certificate and bound


@pytest.mark.parametrize(("loss", "m"), LOSSES)
@pytest.mark.parametrize("kind", ["random", "adversarial"])
def test_regret_is_below_certificate_and_bound(loss: MixableLoss, m: int, kind: str) -> None:
    rng, n, d, B = np.random.default_rng(5), 60, 3, 1.5
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    learner, Y, suffered = GeneralGAF(loss, radius=B, feature_bound=1.0), np.empty((n, m)), 0.0
    for t in range(n):
        said = np.zeros(m) if t == 0 else np.atleast_1d(learner.predict_one(X[t]))
        options = [targets(loss, m, rng) for _ in range(8)]
        Y[t] = options[0] if kind == "random" else max(options, key=lambda y, z=said: loss.value(z, y))
        forecast = learner.predict_then_learn(X[t : t + 1], Y[t : t + 1] if m > 1 else Y[t])
        suffered += loss.value(np.atleast_1d(np.squeeze(forecast)), Y[t])
    assert learner.total_loss_ == pytest.approx(suffered, rel=1e-12)

    def total(flat: np.ndarray) -> float:
        W = flat.reshape(m, d)
        W = W * min(1.0, B / max(np.linalg.norm(W), 1e-300))
        return sum(loss.value(W @ x, y) for x, y in zip(X, Y, strict=True))

    best = optimize.minimize(total, rng.normal(size=m * d) * 0.1, method="L-BFGS-B").fun
    assert suffered - best <= learner.regret_certificate() + 1e-9
    assert learner.regret_certificate() <= learner.regret_bound()


def test_the_bound_asks_for_regularization() -> None:
    X, y = stream(20, 2)
    assert GeneralGAF(LogCoshLoss()).fit(X, y).regret_bound() > 0
    with pytest.raises(NoBound, match="zeta / alpha"):
        GeneralGAF(LogCoshLoss(), regularization=0.1).fit(X, y).regret_bound()
    case: dict[str, Any] = {"size": 6, "n_scores": 2, "radius": 2.0, "alpha": 1.0, "beta": 0.5, "zeta": 4.0, "gamma": 1}
    got = bounds.gaf_general(100, regularization=16.0, **case)
    assert got == pytest.approx(16 * 4 + 6 * (0.5 + 2 * 3**0.5 / 0.5) * np.log(1 + 100 * 0.5 / 32))


def test_gaf_has_a_bound_by_default() -> None:
    X, _ = stream(50, 3)
    y = np.arange(50) % 3
    learner = GAF().fit(X, y)
    assert learner.regret_certificate() <= learner.regret_bound()
    sampled = GAF(expectation="monte-carlo", n_samples=20_000, smoothing="theory", horizon=50).fit(X, y)
    assert sampled.regret_bound(failure=0.02) > sampled.regret_bound(failure=0.2) > learner.regret_bound()
    with pytest.raises(NoBound, match="exact expectations"):
        GAF(expectation="sobol").fit(X, y).regret_bound()


def test_proposition_3_holds_as_often_as_it_says() -> None:
    X, _ = stream(30, 2, seed=7)
    y = np.arange(30) % 3
    exact = GAF(radius=1.0).fit(X, y).total_loss_
    costs = [
        GAF(radius=1.0, expectation="monte-carlo", n_samples=600, smoothing=0.3, random_state=seed)
        .fit(X, y)
        .total_loss_
        - exact
        for seed in range(40)
    ]
    promised = 30 * (2 * 0.3 + np.sqrt(3 * np.log(30 / 0.1) / (0.3 * 600)))
    assert np.mean(np.array(costs) > promised) <= 0.1


# ---------------------------------------------------------------------- targets of several numbers


def test_vectors_of_targets(tmp_path: Any) -> None:
    X, Y = stream(40, 3, 2)
    whole = VovkAzouryWarmuth()
    said = whole.predict_then_learn(X, Y)
    each = np.column_stack([VovkAzouryWarmuth().predict_then_learn(X, y) for y in Y.T])
    assert np.abs(said - each).max() < 1e-12
    assert whole.n_outputs_ == 2
    pieces = VovkAzouryWarmuth()
    for t in range(20):
        pieces.learn_one(X[t], Y[t])
    pieces.save(tmp_path / "half.npz")
    pieces = regretless.load(tmp_path / "half.npz").partial_fit(X[20:], Y[20:])
    assert np.array_equal(pieces.state_.w, whole.state_.w)
    assert pieces.predict_one(X[0]).shape == (2,)
    regret = ((said - Y) ** 2).sum() - ((X @ np.linalg.lstsq(X, Y, rcond=None)[0] - Y) ** 2).sum()
    norm = np.linalg.norm(np.linalg.lstsq(X, Y, rcond=None)[0])
    assert regret <= whole.regret_certificate(norm) <= whole.regret_bound(comparator_norm=norm)
    with pytest.raises(ValueError, match="2 numbers per row"):
        whole.partial_fit(X, Y[:, 0])
    with pytest.raises(BadRow, match="target column 1"):
        whole.partial_fit(X[:1], [[0.0, np.inf]])
    assert VovkAzouryWarmuth().fit(X, Y[:, 0]).n_outputs_ == 1


def test_vectors_are_scored_compared_and_merged() -> None:
    X, Y = stream(60, 3, 2, seed=9)
    trace = regretless.play(VovkAzouryWarmuth(), X, Y, checkpoints=[20, 60], progress=False)
    said = VovkAzouryWarmuth().predict_then_learn(X, Y)
    assert trace.log_loss[-1] == pytest.approx(((said - Y) ** 2).sum())
    for t, (low, high) in zip([20, 60], trace.regret, strict=True):
        W = np.linalg.lstsq(X[:t], Y[:t], rcond=None)[0]
        regret = ((said[:t] - Y[:t]) ** 2).sum() - ((X[:t] @ W - Y[:t]) ** 2).sum()
        assert low - 1e-9 <= regret <= high + 1e-9
    best = regretless.best_in_hindsight(X, Y, "squared", regretless.domains.Ball(0.3))
    assert best.w.shape == (2, 3) and np.linalg.norm(best.w) <= 0.3 * (1 + 1e-9) and best.gap < 1e-6
    assert best.loss == pytest.approx(((X @ best.w.T - Y) ** 2).sum())
    merged = regretless.merge([VovkAzouryWarmuth().fit(X[:30], Y[:30]), VovkAzouryWarmuth().fit(X[30:], Y[30:])])
    assert np.abs(merged.state_.w - VovkAzouryWarmuth().fit(X, Y).state_.w).max() < 1e-9


def test_vectors_pass_to_the_root_of_p() -> None:
    rng = np.random.default_rng(8)
    X, Y = 1e5 * rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    said = VovkAzouryWarmuth(regularization=1.0).predict_then_learn(X, Y)
    each = np.column_stack([VovkAzouryWarmuth(regularization=1.0).predict_then_learn(X, y) for y in Y.T])
    assert np.abs(said - each).max() < 1e-9
    general = GeneralGAF(SquaredLoss(target_bound=10.0), regularization=1.0).predict_then_learn(X, Y)
    assert np.abs(general - each).max() < 1e-9


def test_targets_beyond_the_declared_bound_are_refused() -> None:
    learner = GeneralGAF(SquaredLoss(target_bound=1.0)).fit([[1.0]], [0.5])
    with pytest.raises(BadRow, match=r"row 1: y = 2\.0 is beyond target_bound=1"):
        learner.partial_fit([[1.0], [1.0]], [0.5, 2.0])
    assert learner.state_.tally[0] == 1
    with pytest.raises(ValueError, match=r"pass a regretless\.mixable\.MixableLoss"):
        GeneralGAF("squared").fit([[1.0]], [0.5])
    with pytest.raises(ValueError, match="use GAF"):
        GeneralGAF(mixable.SoftmaxLoss()).fit(np.eye(4), np.eye(4))
    with pytest.raises(ValueError, match="larger scale"):
        GeneralGAF(LogCoshLoss(scale=1e-3)).fit([[1.0]], [0.5])

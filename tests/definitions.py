"""What a learner should forecast, from `tests/reference`: a function `(learner, X, Y, weight) -> forecasts` each.

An entry of the test matrix (tests/learners.py) names its function. Y has one row per label, a distribution over the
classes, or is a vector of numbers. Only parameters are read from the learner.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, softmax

import reference
from regretless import AIOLI, FOLKLORE, OGD
from regretless.learners.first_order.schedules import AdaGradNorm, ConstantStep, InverseRootStep, InverseTimeStep

FORECAST_TO_LEARN = (  # whose `learn` forecasts first, and returns it
    reference.ReferenceAIOLI,
    reference.ReferenceFOLKLORE,
    reference.ReferenceGAF,
    reference.ReferenceONS,
)
PROBABILITIES = ("logistic", "logit", "softmax")


def played(slow: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, link: Callable[[Any], Any]) -> np.ndarray:
    """The forecasts of a reference along the stream."""
    said = []
    for x, y, c in zip(X, Y, weight, strict=True):
        if isinstance(slow, FORECAST_TO_LEARN):
            said.append(link(slow.learn(x, y, c)))
            continue
        said.append(link(slow.forecast(x)))
        (slow.update if hasattr(slow, "update") else slow.learn)(x, y, c)
    return np.array(said)


def given(learner: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(learner, name) for name in names}


def of_margin(u: float) -> list[float]:
    return [float(expit(-u)), float(expit(u))]


# ---------------------------------------------------------------------- second order


def aioli(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """AIOLI, and KernelAIOLI with the linear kernel."""
    names = ("radius", "regularization", "curvature", "virtual_weight", "feature_bound")
    return played(reference.ReferenceAIOLI(**given(learner, *names)), X, Y[:, 1], weight, of_margin)


def folklore(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    names = ("radius", "regularization", "curvature", "feature_bound")
    slow = reference.ReferenceFOLKLORE(**given(learner, *names), n_classes=Y.shape[1])
    return played(slow, X, Y, weight, softmax)


def gaf(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """GAF, and KernelGAF with the linear kernel."""
    options = given(learner, "radius", "regularization", "curvature", "smoothing", "feature_bound")
    if options["regularization"] is None:  # Corollary 2's, with the constants of docs/errata.md, G7
        R = options["feature_bound"] or 1.0
        options["regularization"] = max(4, Y.shape[1] - 1) * R**2 / (2 * math.log(2))
    return played(reference.ReferenceGAF(**options, n_classes=Y.shape[1]), X, Y, weight, np.asarray)


def ons(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    names = ("radius", "gamma", "epsilon", "feature_bound")
    return played(reference.ReferenceONS(**given(learner, *names), n_classes=Y.shape[1]), X, Y, weight, np.asarray)


def vovk(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """VovkAzouryWarmuth, and GeneralGAF with the squared loss."""
    return played(reference.ReferenceVAW(learner.regularization), X, Y, weight, float)


# ---------------------------------------------------------------------- first order


def loss_of(learner: Any, n_classes: int) -> str:
    """The name of the loss in the reference."""
    if n_classes <= 2:
        return str(learner.loss)
    return "softmax" if learner.multiclass == "softmax" else f"multiclass {learner.multiclass}"


def from_scores(slow: Any, loss: str, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    if loss == "softmax":
        return played(slow, X, Y, weight, softmax)
    if loss in PROBABILITIES:
        return played(slow, X, Y, weight, lambda z: of_margin(z[0]))
    return played(slow, X, Y, weight, lambda z: z if len(z) > 1 else float(z[0]))


def classes_of(Y: np.ndarray) -> int:
    return Y.shape[1] if Y.ndim > 1 else 1


def perceptron(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    slow = reference.ReferencePerceptron(classes_of(Y), X.shape[1])
    return from_scores(slow, "hinge", X, Y, weight)


def ogd(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    K, step = classes_of(Y), learner.step
    meant: tuple[str, float | None] = ("theory", learner.gradient_bound)
    if step == "adagrad-norm":
        meant = ("adagrad norm", 2 * learner.radius / math.sqrt(2.0))
    elif step != "theory":
        meant = as_steps(step)
    loss = loss_of(learner, K)
    return from_scores(reference.ReferenceOGD(loss, K, X.shape[1], learner.radius, meant), loss, X, Y, weight)


def as_steps(schedule: Any) -> tuple[str, float]:
    """A schedule in the reference's words."""
    words = {
        ConstantStep: ("constant", "eta"),
        InverseRootStep: ("inverse root", "eta"),
        InverseTimeStep: ("inverse time", "sigma"),
        AdaGradNorm: ("adagrad norm", "eta"),
    }
    if isinstance(schedule, float):
        return "constant", schedule
    name, number = words[type(schedule)]
    return name, getattr(schedule, number)


def strongly_convex(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    K = classes_of(Y)
    loss = loss_of(learner, K)
    slow = reference.ReferenceStronglyConvexOGD(
        loss, K, X.shape[1], learner.regularization, learner.sigma, learner.radius
    )
    return from_scores(slow, loss, X, Y, weight)


def linearized_ftrl(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    K = classes_of(Y)
    loss = loss_of(learner, K)
    slow = reference.ReferenceFTRL(loss, K, X.shape[1], **given(learner, "alpha", "beta", "l1", "l2", "radius"))
    return from_scores(slow, loss, X, Y, weight)


def mirror_descent(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    K, d = classes_of(Y), X.shape[1]
    domain = type(learner.domain).__name__.lower().removesuffix("space")
    size = getattr(learner.domain, "radius", getattr(learner.domain, "size", 1.0))
    schedule: tuple = ()
    if learner.schedule != "theory":
        schedule = as_steps(learner.schedule)
    elif learner.lazy:
        mirror = reference.ReferenceMirror(learner.mirror, domain, d if K < 3 else K * d, size)
        schedule = reference.theory_schedule(mirror, learner.gradient_bound)
    else:
        schedule = ("inverse root", math.sqrt(2.0) * size / learner.gradient_bound)
    loss = loss_of(learner, K)
    slow = reference.ReferenceMirrorDescent(
        loss,
        K,
        d,
        proxy=learner.mirror,
        domain=domain,
        size=size,
        schedule=schedule,
        **given(learner, "lazy", "averaging"),
    )
    return from_scores(slow, loss, X, Y, weight)


def exponentiated_gradient(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    domain = "octahedron" if learner.signed else "simplex"
    return aggregated(learner, X, Y, weight, "entropy", domain, learner.feature_bound, averaging=False)


def aggregator(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    base = learner.base
    H = X if base == "columns" else np.where(X[:, base.features] > base.thresholds, 1.0, -1.0)
    H = np.hstack([H, -H]) if learner.symmetric else H
    return aggregated(learner, H, Y, weight, learner.mirror, learner.domain, learner.bound, averaging=True)


def aggregated(
    learner: Any,
    H: np.ndarray,
    Y: np.ndarray,
    weight: np.ndarray,
    proxy: str,
    domain: str,
    bound: float,
    averaging: bool,
) -> np.ndarray:
    mirror = reference.ReferenceMirror(proxy, domain, H.shape[1], learner.scale)
    slope = reference.largest_slope(learner.loss, bound, learner.scale)
    slow = reference.ReferenceMirrorDescent(
        learner.loss, classes_of(Y), H.shape[1], proxy=proxy, domain=domain, size=learner.scale,
        schedule=reference.theory_schedule(mirror, slope, learner.horizon), averaging=averaging,
    )  # fmt: skip
    return from_scores(slow, learner.loss, H, Y, weight)


# ---------------------------------------------------------------------- made of others

MEMBERS: dict[type, Callable[..., np.ndarray]] = {AIOLI: aioli, FOLKLORE: folklore, OGD: ogd}


def of_members(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What the members forecast, (N, n, K)."""
    return np.array([MEMBERS[type(member)](member, X, Y, weight) for member in learner.estimators])


def mixture(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    P = of_members(learner, X, Y, weight)
    prior = np.full(len(P), 1 / len(P)) if learner.prior is None else np.array(learner.prior)
    w, said = prior, []
    for t, c in enumerate(weight):
        said.append(w @ P[:, t])
        if c > 0:
            w = w * np.prod(P[:, t] ** (c * Y[t]), axis=1)
            w = (1 - learner.share) * w / w.sum() + learner.share * prior
    return np.array(said)


def hedge(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """AdaHedge over the most probable labels of the members."""
    named = of_members(learner, X, Y, weight).argmax(axis=2)
    N, K = len(named), Y.shape[1]
    total, gap, said = np.zeros(N), 0.0, []
    for t, c in enumerate(weight):
        eta = math.log(N) / gap if gap > 0 else math.inf
        w = (total == total.min()).astype(float) if gap == 0 else np.exp(-eta * (total - total.min()))
        w /= w.sum()
        said.append(w @ np.eye(K)[named[:, t]])
        loss = c * (1.0 - Y[t, named[:, t]])
        mixed = (total + loss).min() - total.min() if gap == 0 else -math.log(float(w @ np.exp(-eta * loss))) / eta
        gap += max(0.0, float(w @ loss) - mixed)
        total += loss
    return np.array(said)


def one_vs_rest(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    member = learner.estimator
    q = [MEMBERS[type(member)](member, X, np.column_stack([1 - y, y]), weight)[:, 1] for y in Y.T]
    return np.transpose(q) / np.sum(q, axis=0)[:, None]


# ---------------------------------------------------------------------- trees


def mondrian_forest(learner: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    names = ("n_estimators", "dirichlet", "max_nodes", "random_state")
    slow = reference.ReferenceMondrianForest(**given(learner, *names), n_classes=Y.shape[1])
    return played(slow, X, Y, weight, lambda p: p)

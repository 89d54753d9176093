"""merge: learners of different rows, made one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from sklearn.base import clone

from regretless.core.learner import OnlineLearner
from regretless.core.turns import reading

Learner = TypeVar("Learner", bound=OnlineLearner)


def merge(learners: Sequence[Learner]) -> Learner:
    r"""A new learner that has learned what all of these have: their sums of quadratics, added up.

    The state of `AIOLI`, `FOLKLORE`, `GAF` and `VovkAzouryWarmuth` is :math:`\lambda|V|^2 + \sum_s q_s(V)`, one
    quadratic a row. Learners of different rows, on different machines, add up to one of all rows; lambda counts once.
    The order does not matter, but for rounding. The given learners stay as they are, and what is merged learns on, is
    saved and is merged again like any other.

    **Guarantee.** Wherever a quadratic was taken, it lies below its loss. So `regret_certificate()` of what is merged
    holds for the union of the rows: the losses suffered are those of the parts' own forecasts, and the comparator is
    the best of all rows. It is more than the certificate of one pass by as much as those forecasts, made by learners
    that had seen fewer rows, were worse. `regret_bound()` is refused: the theorems are about one pass.

    Parameters
    ----------
    learners : two learners or more of one kind, with the same parameters, classes and features. Others are refused:
        a step of a first-order learner or of ONS starts where the last one ended, so that there is nothing to add.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import AIOLI, merge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5)) / np.sqrt(5)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> parts = [AIOLI(radius=5.0).fit(X[i::4], y[i::4]) for i in range(4)]
    >>> learner = merge(parts)
    >>> one = AIOLI(radius=5.0).fit(X, y)
    >>> print(f"regret <= {learner.regret_certificate():.1f}; in one pass {one.regret_certificate():.1f}")
    regret <= 80.7; in one pass 31.0
    """
    given = list(learners)
    if len(given) < 2:
        raise ValueError(f"there are {len(given)} learners to merge: give two or more.")
    first = given[0]
    for i, learner in enumerate(given):
        _require_alike(first, learner, i)
    merged = beginning(first)
    with ExitStack() as turns:
        for learner in given:
            turns.enter_context(reading(learner))
        merged.state_ = merged._merged([learner.state_ for learner in given], merged.state_)
        merged._parts = sum(learner._parts for learner in given)
    return merged


def beginning(learner: Learner) -> Learner:
    """A learner of the same kind, parameters, classes and features that has met no row."""
    fresh: Any = clone(learner).set_params(**learner._played_with)
    fresh.n_features_in_ = learner.n_features_in_
    if hasattr(learner, "feature_names_in_"):
        fresh.feature_names_in_ = learner.feature_names_in_
    if hasattr(learner, "classes_"):
        fresh._meet_classes(learner._labels)
    fresh._begin(learner.n_features_in_)
    return fresh


def require_sums(learner: OnlineLearner) -> None:
    """Refuse a learner whose state is not a sum over rows, with the reason."""
    if type(learner)._merged is OnlineLearner._merged:
        learner._merged([], None)


def _require_alike(first: Any, other: Any, i: int) -> None:
    """Refuse to add what is not of one kind."""
    if not isinstance(other, OnlineLearner):
        raise ValueError(f"learners[{i}]={other!r} is none of regretless's learners: it cannot be merged.")
    if not hasattr(other, "state_"):
        raise ValueError(f"learners[{i}]={other!r} has learned nothing yet: leave it out.")
    if type(other) is not type(first):
        raise ValueError(
            f"learners[{i}] is {type(other).__name__} and learners[0] {type(first).__name__}: one kind only."
        )
    require_sums(other)
    for name, value in first._played_with.items():
        if other._played_with[name] != value:
            raise ValueError(
                f"learners[{i}] plays with {name}={other._played_with[name]!r} and learners[0] with {value!r}: only "
                "learners with the same parameters can be merged."
            )
    mine, others = _labels(first), _labels(other)
    if mine != others:
        raise ValueError(
            f"learners[{i}] has the classes {others} and learners[0] {mine}: declare the same, in the same order, in "
            "the first call, classes=[...]."
        )
    if first.n_features_in_ != other.n_features_in_ or _names(first) != _names(other):
        raise ValueError(
            f"learners[{i}] has {other.n_features_in_} features{_names(other)} and learners[0] "
            f"{first.n_features_in_}{_names(first)}: give both the same columns, in the same order."
        )


def _labels(learner: Any) -> list[Any]:
    return learner.classes_.tolist() if hasattr(learner, "classes_") else []


def _names(learner: Any) -> str:
    return f" ({', '.join(map(str, learner.feature_names_in_))})" if hasattr(learner, "feature_names_in_") else ""

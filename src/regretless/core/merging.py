"""merge: combine learners that were trained on different rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from regretless.core.learner import OnlineLearner
from regretless.core.scikit_learn import clone
from regretless.core.turns import reading

Learner = TypeVar("Learner", bound=OnlineLearner)

RULES = ("balanced", "sum")
BY_ROWS = "rows"  # the rule depends on rows that no part has learned


def merge(learners: Sequence[Learner], rule: str = "balanced", X: Any = None, y: Any = None) -> Learner:
    r"""A new learner that has learned all rows of the given ones: their sums of quadratics, added.

    The state of `AIOLI`, `FOLKLORE`, `GAF` and `VovkAzouryWarmuth` is :math:`\lambda|V|^2 + \sum_s q_s(V)`, one
    quadratic per row. Learners of different rows, possibly from different machines, can be added to one learner of all
    rows. The order does not matter, except for rounding. The given learners are not changed. The result can learn on,
    be saved and be merged again.

    The sum is exact for `VovkAzouryWarmuth`. The leaders of the others have already made up, in part, for lambda and
    for the pull of their forecasts towards equal probabilities; if lambda then counts once and the pull shrinks with
    the rows, the result overshoots and may be worse than each part. The default rule measures how far the leaders have
    converged and lets lambda and the pull count accordingly, between once and once per part (docs/merging.md).
    ``rule="rows"`` weighs several such counts, among them those of the other two rules, by their losses on rows that no
    part has learned.

    **Guarantee.** Every quadratic lies below its loss, wherever it was taken. So `regret_certificate()` of the result
    holds for the union of the rows: the losses are those of the parts' own forecasts, and the comparator is the best
    for all rows. It exceeds the certificate of a single pass, because the parts forecast with fewer rows learned, and
    because comparators pay for lambda as often as the sum counts it. `regret_bound()` is refused: the theorems are
    about a single pass.

    Parameters
    ----------
    learners : at least two learners of the same class, with the same parameters, classes and features. Other learners
        are refused: a step of a first-order learner or of ONS depends on the previous step, so there is nothing to add.
        Merge all of them at once: merging some, then the rest, does not give quite the same under "balanced".
    rule : "balanced", close to the learner of one pass; "sum", the exact sum of the quadratics with lambda once, which
        may overshoot; or "rows", between and beyond them, by the losses on X and y.
    X, y : rows and labels for ``rule="rows"``, a few hundred that no part has learned. They are not learned here
        either: pass them to `partial_fit` of the result afterwards.

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
    regret <= 80.8; in one pass 31.0
    >>> new = rng.normal(size=(200, 5)) / np.sqrt(5)
    >>> labels = rng.random(200) < 1 / (1 + np.exp(-new @ [3, -3, 2, 0, 1]))
    >>> learner = merge(parts, rule="rows", X=new, y=labels).partial_fit(new, labels)
    """
    given = list(learners)
    if len(given) < 2:
        raise ValueError(f"{len(given)} learners given: merge needs at least two.")
    require_rule(rule, *RULES, BY_ROWS)
    if not (X is None) == (y is None) == (rule != BY_ROWS):
        raise ValueError(f'rule={rule!r}: pass X and y, rows that no part has learned, with rule="rows" and only then.')
    first = given[0]
    for i, learner in enumerate(given):
        _require_alike(first, learner, i)
    merged = beginning(first)
    rows = merged._take_in(X, y, None, None) if rule == BY_ROWS else None
    with ExitStack() as turns:
        for learner in given:
            turns.enter_context(reading(learner))
        merged._follow(given)
        states = [learner.state_ for learner in given]
        by = rule if rows is None else merged._rule_by(states, *rows)
        merged.state_ = merged._merged(states, merged.state_, by)
    return merged


def beginning(learner: Learner) -> Learner:
    """A new learner of the same class, parameters, classes and features, without rows."""
    fresh: Any = clone(learner).set_params(**learner.params_)
    begun: Learner = fresh._begin_like(learner, getattr(learner, "_labels", None))
    return begun


def require_rule(rule: str, *known: str) -> None:
    """Refuse an unknown rule."""
    if rule not in known:
        raise ValueError(f"rule={rule!r} is unknown: choose one of {known}.")


def require_sums(learner: OnlineLearner) -> None:
    """Refuse a learner whose state is not a sum over rows, with the reason."""
    if type(learner)._merged is OnlineLearner._merged:
        learner._merged([], None, RULES[0])


def _require_alike(first: Any, other: Any, i: int) -> None:
    """Refuse learners that do not match."""
    if not isinstance(other, OnlineLearner):
        raise ValueError(f"learners[{i}]={other!r} is not a learner of regretless and cannot be merged.")
    if not hasattr(other, "state_"):
        raise ValueError(f"learners[{i}]={other!r} is not fitted: leave it out.")
    if type(other) is not type(first):
        raise ValueError(
            f"learners[{i}] is {type(other).__name__} and learners[0] is {type(first).__name__}: only learners of "
            "the same class can be merged."
        )
    require_sums(other)
    for name, value in first.params_.items():
        if other.params_[name] != value:
            raise ValueError(
                f"learners[{i}] has {name}={other.params_[name]!r} and learners[0] has {value!r}: only "
                "learners with the same parameters can be merged."
            )
    mine, others = _labels(first), _labels(other)
    if mine != others:
        raise ValueError(
            f"learners[{i}] has the classes {others} and learners[0] has {mine}: declare the same classes, in the same "
            "order, in the first call with classes=[...]."
        )
    if first.n_features_in_ != other.n_features_in_ or _names(first) != _names(other):
        raise ValueError(
            f"learners[{i}] has {other.n_features_in_} features{_names(other)} and learners[0] has "
            f"{first.n_features_in_}{_names(first)}: both need the same columns, in the same order."
        )


def _labels(learner: Any) -> list[Any]:
    return learner.classes_.tolist() if hasattr(learner, "classes_") else []


def _names(learner: Any) -> str:
    return f" ({', '.join(map(str, learner.feature_names_in_))})" if hasattr(learner, "feature_names_in_") else ""

"""Over every public learner: a fit begins anew, and what a learner holds is declared."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from held import held
from learners import MATRIX, Entry, Stream, within
from regretless.evaluate.registry import public_learners

FITS = [entry for entry in MATRIX if hasattr(entry.learner, "fit")]


def succession(entries: list[Entry]) -> list[tuple[Entry, Entry]]:
    """Of one class: each configuration after the one before, and the first one after the last."""
    return list(itertools.pairwise([entries[-1], *entries]))


PAIRS = [
    pair
    for name in public_learners()
    for pair in succession([entry for entry in FITS if type(entry.learner).__name__ == name] or [None])
    if pair[0] is not None
]


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=lambda entry: str(entry))
def test_a_fit_with_new_parameters_leaves_nothing_of_the_old_run(old: Entry, new: Entry) -> None:
    """Not even of another kind of target, another number of columns, or names of these."""
    before, after = old.stream(n=40, d=4), new.stream(n=30, d=3, seed=1)
    named = pd.DataFrame(before.X, columns=["a", "b", "c", "d"])
    learner = old.new().fit(named, before.y, **old.first)
    learner.set_params(**new.new().get_params(deep=False))
    learner.fit(*after, **new.first)
    fresh = new.new().fit(*after, **new.first)
    assert vars(learner).keys() == vars(fresh).keys()
    for name, value in vars(fresh).items():
        assert held(getattr(learner, name)) == held(value), name


def learned_by(entry: Entry, stream: Stream) -> Any:
    learner = entry.new()
    if entry.is_bandit:
        for x, label in zip(within(stream.X, 1.0), stream.y, strict=True):
            action, _ = learner.act(x)
            learner.feedback(x, action, bool(action == label), *([label] if learner.needs_labels else []))
        return learner
    return learner.partial_fit(*stream, **entry.first)


@pytest.mark.parametrize("entry", MATRIX, ids=str)
def test_what_a_learner_holds_is_declared(entry: Entry) -> None:
    """Parameters, names that end in _, and those in `_learned`, which a fit clears."""
    learner = learned_by(entry, Stream(*(part[:20] for part in entry.stream("iid", n=40, d=3))))
    declared = {name for kind in type(learner).__mro__ for name in vars(kind).get("_learned", ())}
    parameters = set(vars(entry.new()))
    undeclared = {name for name in vars(learner) if not name.endswith("_")} - parameters - declared
    assert not undeclared
    assert np.all([name not in parameters for name in declared])

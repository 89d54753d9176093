"""Probabilities of stopping in a Mondrian tree: against sums of logarithms, beyond the range of floats and back."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from regretless.learners.trees.mixtures import (
    GO,
    LEFT_OUT,
    MIXTURE,
    STEP,
    STOP,
    begin_boldly,
    divide,
    factor,
    learn_factor,
    log_odds,
    set_odds,
)

FAR = [-3000.0, -500.0, -280.0, -277.0, -140.0, -138.0, -3.0, 0.0, 1.0, 138.0, 140.0, 277.0, 280.0, 500.0, 3000.0, 1e12]


def log_of_sum(odds: float) -> float:
    return float(np.logaddexp(0.0, odds))


def node(odds: float) -> np.ndarray:
    """A table of two equal nodes with these log-odds."""
    nodes = np.zeros((2, MIXTURE))
    for v in range(2):
        set_odds(nodes, v, 0, odds)
    return nodes


def assert_close(found: Any, expected: Any, rel: float, abs: float = 0.0) -> None:
    """As pytest.approx, of whole streams."""
    found, expected = np.array(found), np.array(expected)
    far = np.abs(found - expected) > np.maximum(rel * np.abs(expected), abs)
    assert not far.any(), f"row {far.argmax()}: {found[far][0]} is not {expected[far][0]}"


def assert_in_range(nodes: np.ndarray) -> None:
    stop, go, out = nodes.T
    less = np.minimum(stop, go)
    assert_close(stop + go, np.ones(len(nodes)), rel=0.0, abs=1e-15)
    assert (STEP * STEP * (1 - 1e-12) <= less).all()
    assert ((out == 0.0) | ((less <= STEP * (1 + 1e-12)) & ((out > 0.0) == (stop < go)))).all()


@pytest.mark.parametrize("odds", FAR)
def test_odds_become_probabilities_and_return(odds: float) -> None:
    nodes = node(odds)
    assert_in_range(nodes)
    assert log_odds(nodes, 0, 0) == pytest.approx(odds, rel=1e-14, abs=1e-13)
    if not nodes[0, LEFT_OUT]:
        assert math.log(nodes[0, STOP]) == pytest.approx(-log_of_sum(-odds), rel=1e-13, abs=1e-15)
        assert math.log(nodes[0, GO]) == pytest.approx(-log_of_sum(odds), rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("in_logs", [False, True])
def test_odds_beyond_the_range_of_floats_return(in_logs: bool) -> None:
    """Rows for, then rows against the node, then rows for it again."""
    rng = np.random.default_rng(0)
    nodes, total = node(0.0), Fraction(0)  # exact
    said, learned, meant, found, true, kept = [], [], [], [], [], []
    for side in np.repeat([1.0, -1.0, 1.0], [2000, 4000, 2000]):
        own, below = sorted(np.log(rng.uniform(1e-3, 1.0, size=2)).tolist(), key=lambda value: -side * value)
        before = float(total)
        meant.append(below + log_of_sum(before + own - below) - log_of_sum(before))
        given = (own, below) if in_logs else (math.exp(own), math.exp(below))
        said.append(factor(nodes, 0, 0, *given, in_logs))
        learned.append(learn_factor(nodes, 0, 0, *given, in_logs))
        total += Fraction(own) - Fraction(below)
        true.append(float(total))
        found.append(log_odds(nodes, 0, 0))
        kept.append(nodes.copy())
    assert_close(learned, said, rel=1e-14)
    assert_close(said if in_logs else np.log(said), meant, rel=1e-10, abs=1e-10)
    assert_close(found, true, rel=1e-11, abs=1e-9)
    assert_in_range(np.concatenate(kept))
    largest = np.abs(true).max()
    assert largest > 2000.0 and abs(true[-1]) < 0.2 * largest


@pytest.mark.parametrize("odds", FAR)
@pytest.mark.parametrize("share", [0.25, 1e-12])
def test_a_division_leaves_the_mixture_as_it_was(odds: float, share: float) -> None:
    """The probability of stopping at the node or at its copy is that before, and the copy has its share of it."""
    nodes = node(odds)
    divide(nodes, 0, 1, 0, share)
    assert_in_range(nodes)
    assert log_odds(nodes, 1, 0) == pytest.approx(odds + math.log(share), rel=1e-13, abs=1e-12)
    kept = math.log1p(-share) - float(np.logaddexp(math.log(share), -odds))
    assert log_odds(nodes, 0, 0) == pytest.approx(kept, rel=1e-13, abs=1e-12)


@pytest.mark.parametrize("odds", FAR)
def test_a_bold_split_begins_with_equal_priors(odds: float) -> None:
    nodes = node(odds)
    change = begin_boldly(nodes, 0, 0)
    assert_in_range(nodes)
    log_stop = -log_of_sum(-odds)
    assert log_odds(nodes, 0, 0) == pytest.approx(math.log(2.0) + log_stop, rel=1e-13, abs=1e-12)
    assert change == pytest.approx(0.5 + math.exp(log_stop), rel=1e-13)

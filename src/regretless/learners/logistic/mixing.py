r"""The mixture of members: the weighted mean of their probabilities, with weights proportional to exp(-loss).

The log loss is 1-mixable: the mixture with weights v has loss :math:`-\ln\sum_i v_i p_i(y)`, and after the update
:math:`v_i \leftarrow v_i p_i(y)`, normalised, the losses telescope to at most :math:`\min_i L_i + \ln 1/\pi_i` with the
weights :math:`\pi` before the first row. For a soft label :math:`\prod_k p_k^{y_k}` is concave in p, so the same holds.

To track change, the weights move towards those before the first row after row t, by 1/(t+1) (fixed share, with a share
that decreases): the weight of a member that was bad for long stays above :math:`\pi_i/(t+1)`.

`Mixture` in learners/ensembles has a kernel with the same purpose and different arithmetic. It mixes logarithms, so
that a probability below 1e-300 keeps its digits whatever learners it holds; this takes N K more exponentials and N more
logarithms per row. Here the probabilities themselves are mixed, which the Brier score needs anyway, and one that
underflows counts as 1e-300. `Mixture` also has priors and a constant share.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from regretless.core.files import state_checks
from regretless.core.kernels.borrow import borrowed, keep
from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import inlined_kernel, jitable, kernel, merged_kernel, shared_kernel
from regretless.core.numbers.exponentials import exponentiate
from regretless.core.numbers.scores import N_SCORED, score_row
from regretless.core.numbers.tally import ROWS, record
from regretless.core.types import Array
from regretless.learners.logistic.stacking import centre, combine, learn

LEAST = 1e-300  # replaces a probability that underflowed


class MixtureState(NamedTuple):
    """The part of a state that the mixture updates."""

    prior: Array  # (N,) the weights before the first row, up to a constant; not updated
    log_weight: Array  # (N,) up to a constant
    losses: Array  # (N,) total log loss of each member
    scores: Array  # see core/numbers/scores.py
    bins: Array
    tally: Array
    stack_matrix: Array  # of the last member, which combines the others: see stacking.py; (0, 0) if there is none
    stack_weights: Array


def check_mixture(state: Any, rows: float) -> None:
    """Raise an error for weights, losses and scores that no `rows` rows can produce."""
    state_checks.log_weights("log_weight", state.log_weight, mixed=False)
    state_checks.within("losses", state.losses, -state_checks.ROUNDING, math.inf)
    most = rows + state_checks.ROUNDING
    state_checks.require(state.scores[N_SCORED] == rows, "scores count other rows")
    state_checks.within("scores", state.scores[1:], -state_checks.ROUNDING, 2.0 * most)
    state_checks.whole("bins", state.bins[:, 0], rows)
    state_checks.require(state.bins[:, 0].sum() == rows, "bins count other rows")
    state_checks.within("bins", state.bins, -state_checks.ROUNDING, most)


class Room(NamedTuple):
    """What a forecast of the mixture needs room for, and what learning the same row reads of it."""

    portion: Array  # (N,) the weights
    p: Array  # (N, K) the members' probabilities
    tops: Array  # (N,) the largest logit of each member
    totals: Array  # (N,) the sums of exp(logit - top)
    features: Array  # (N, K) of the member that combines the others; no rows if there is none
    mixture: Array  # (n, K) the probabilities forecast


@jitable
def new_room(n_members: int, stacks: bool, n: int, K: int) -> Room:
    """Room for n rows."""
    some, table = np.empty((3, n_members)), np.empty((n_members, K))
    return Room(some[0], table, some[1], some[2], np.empty((n_members * stacks, K)), np.empty((n, K)))


class Rules(NamedTuple):
    """How `mix_in` plays."""

    shares: bool  # fixed share
    reserves: bool  # row t keeps 1/(t+2)^2 of its probability for labels never seen
    said: bool  # the forecast of the one row, from the present weights, is in the room


@kernel
def mix(
    state: MixtureState,
    logits: Array,
    Y: Array,
    weight: Array,
    sizes: Array,
    shares: bool,
    reserves: bool,
    out: Array,
) -> None:
    """Mix the members' logits (N, n, K) into log probabilities `out`, row by row, and update the weights.

    `sizes` are the norms of the rows. `shares` turns fixed share on. `reserves` says that row t keeps 1/(t+2)^2 of its
    probability for labels never seen, which costs less than ln 2 in total.
    """
    N, n, K = logits.shape
    room = new_room(N, state.stack_weights.size > 0, n, K)
    mix_in(room, state, logits, Y, weight, sizes, Rules(shares, reserves, False), out)


@shared_kernel
def mix_in(
    room: Room,
    state: MixtureState,
    logits: Array,
    Y: Array,
    weight: Array,
    sizes: Array,
    rules: Rules,
    out: Array,
) -> None:
    """`mix`, in this room."""
    # to count the arrays of the room for every row takes a fifth of the time of a forecast
    room, state, logits, Y, weight, sizes, out = borrowed((room, state, logits, Y, weight, sizes, out))
    log_weight, losses, tally = state.log_weight, state.losses, state.tally
    N, n, K = logits.shape
    whole, stacks = state.prior.sum(), state.stack_weights.size > 0
    own_lines = np.empty((2, 3 * max(K, state.stack_weights.size)))
    buffers = part_of(own_lines[0], K), part_of(own_lines[1], state.stack_weights.size)
    for t in range(n):
        if not rules.said:
            portions(log_weight, room.portion)
            blend_row(room, state.stack_weights, logits, t)
        publish(room, t, out)
        loss = 0.0
        for k in range(K):
            loss -= Y[t, k] * out[t, k]
        if weight[t] == 0.0:
            continue
        if stacks:
            learn(state.stack_matrix, state.stack_weights, room.features, logits[N - 1, t], Y[t], weight[t], buffers)
        score_row(room.mixture, Y, t, False, state.scores, state.bins)
        if rules.reserves:
            loss -= math.log1p(-reserve(tally[ROWS]))
        record(tally, weight[t], weight[t] * loss, 0.0, sizes[t])
        top = -math.inf
        for i in range(N):
            own = member_loss(room, logits, Y, i, t)
            losses[i] += weight[t] * own
            log_weight[i] -= weight[t] * own
            top = max(top, log_weight[i])
        for i in range(N):
            log_weight[i] -= top
        if rules.shares:
            portions(log_weight, room.portion)
            share = 1.0 / (tally[ROWS] + 1.0)
            for i in range(N):
                log_weight[i] = math.log((1.0 - share) * room.portion[i] + share * state.prior[i] / whole)
    keep(own_lines)


@inlined_kernel
def part_of(line: Array, n: int) -> Array:
    """The beginning of a line as an array (3, n)."""
    return borrowed(line[: 3 * n].reshape(3, n))


@shared_kernel
def blend(log_weight: Array, stack_weights: Array, logits: Array, out: Array) -> None:
    """The forecasts of `mix` for a block, all with the same weights."""
    N, n, K = logits.shape
    blend_in(new_room(N, stack_weights.size > 0, n, K), log_weight, stack_weights, logits, out)


@kernel
def blend_in(room: Room, log_weight: Array, stack_weights: Array, logits: Array, out: Array) -> None:
    """`blend`, in this room."""
    room = borrowed(room)
    portions(log_weight, room.portion)
    for t in range(logits.shape[1]):
        blend_row(room, stack_weights, logits, t)
        publish(room, t, out)


@inlined_kernel
def publish(room: Room, t: int, out: Array) -> None:
    """Write the log probabilities of row t."""
    for k in range(out.shape[1]):
        out[t, k] = math.log(max(room.mixture[t, k], LEAST))


@merged_kernel
def blend_row(room: Room, stack_weights: Array, logits: Array, t: int) -> None:
    """The forecast of row t, with the weights in the room."""
    N, _, K = logits.shape
    others = N - 1 if stack_weights.size > 0 else N
    for k in range(K):
        room.mixture[t, k] = 0.0
    add_members(room, logits, t, 0, others)
    if others < N:
        stack(stack_weights, logits, t, room.mixture, room.features)
        add_members(room, logits, t, others, N)


@kernel
def stack(weights: Array, logits: Array, t: int, mixture: Array, features: Array) -> None:
    """Write the logits of the last member for row t, from those of the others and their mixture, up to a factor."""
    N, K = logits.shape[0], features.shape[1]
    for i in range(N - 1):
        centre(logits[i, t], features[i])
    for k in range(K):
        features[N - 1, k] = math.log(max(mixture[t, k], LEAST))
    centre(features[N - 1], features[N - 1])
    combine(weights, features, logits[N - 1, t])


@inlined_kernel
def portions(log_weight: Array, portion: Array) -> None:
    """The weights, normalised to sum to 1."""
    copy_line(log_weight, portion)
    exponentiate(portion)
    total = 0.0
    for i in range(portion.size):
        total += portion[i]
    for i in range(portion.size):
        portion[i] /= total


@kernel
def add_members(room: Room, logits: Array, t: int, first: int, last: int) -> None:
    """Add the probabilities of members `first` to `last` - 1 for row t to the mixture, with the weights in the room."""
    room, K = borrowed(room), logits.shape[2]
    p, tops, totals, mixture = room.p, room.tops, room.totals, room.mixture[t]
    for i in range(first, last):
        top = logits[i, t, 0]
        for k in range(1, K):
            top = max(top, logits[i, t, k])
        for k in range(K):
            p[i, k] = logits[i, t, k] - top
        tops[i] = top
    exponentiate(p[first:last].reshape(-1))  # of all these members at once: a fifth of the time
    for i in range(first, last):
        total = 0.0
        for k in range(K):
            total += p[i, k]
        for k in range(K):
            p[i, k] /= total
            mixture[k] += room.portion[i] * p[i, k]
        totals[i] = total


@inlined_kernel
def member_loss(room: Room, logits: Array, Y: Array, i: int, t: int) -> float:
    """The log loss of member i on row t, whose probabilities are in the room."""
    loss = room.tops[i]
    for k in range(Y.shape[1]):
        loss -= Y[t, k] * logits[i, t, k]
    return loss + math.log(room.totals[i])


@kernel
def reserve(rows: float) -> float:
    """The probability kept for a label never seen, after so many rows were learned."""
    return 1.0 / ((rows + 2.0) * (rows + 2.0))


def write_forecasts(said: Array, named: int, rows_before: float, weight: Array, out: Array) -> None:
    """Copy the log probabilities of a block, (n, slots), to `out`, which may have more columns than there were names.

    The first `named` columns had a class when the rows were forecast. The others share the probability kept for labels
    never seen; `rows_before` rows had been learned before the block.
    """
    out[:, :named] = said[:, :named]
    unnamed = out.shape[1] - named
    if not unnamed:
        return
    if named < said.shape[1]:  # among the classes named alone
        out[:, :named] -= np.logaddexp.reduce(said[:, :named], axis=1, keepdims=True)
    learned = rows_before + np.cumsum(weight > 0.0) - (weight > 0.0)
    kept = 1.0 / (learned + 2.0) ** 2
    out[:, :named] += np.log1p(-kept)[:, None]
    out[:, named:] = np.log(kept / unnamed)[:, None]

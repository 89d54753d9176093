"""MondrianForest: the aggregated Mondrian forest."""

from __future__ import annotations

import math
import mmap
from typing import NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.files import state_checks
from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import kernel, merged_kernel
from regretless.core.kernels.one_row import RowKernels
from regretless.core.learner import OnlineClassifier
from regretless.core.numbers.links import sigmoid
from regretless.core.numbers.tally import LOSS, ROWS, TALLIES, UNEVEN, record, require_unit_weights
from regretless.core.rows import validate
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.trees import mondrian_tree as tree
from regretless.learners.trees.mondrian_tree import COUNTS, Scratch
from regretless.learners.trees.prunings import best_pruning, check_trees
from regretless.theory import bounds

MEMORY = 2**30  # bytes of the forest, if max_nodes is None
MOST_NODES = 2**53  # of all trees: the table has their numbers as floats
LARGE = 2**20  # bytes of a table that is made with memory to grow into, of up to AHEAD times its size
AHEAD = 64
FIRST_NODES = 4  # per tree, for which a new forest has room
LEAST_DIRICHLET = 1e-9  # forecasts are far from 0: see SURE in mondrian_tree.py


class Forest(NamedTuple):
    """The state: all trees in one table, which has room for more nodes."""

    nodes: Array  # (room, 14 + K + 2d): see mondrian_tree.py; 0 where there is no node yet
    sizes: Array  # (M,) the number of nodes of each tree
    losses: Array  # (M,) the total log loss of each tree, cautious; with weights, -ln of the sum over its prunings
    played: Array  # (2,) the total log loss of the cautious and of the bold forest
    tally: Array  # see tally.py


class ForestConstants(NamedTuple):
    """The validated numbers that the kernels read."""

    s: float  # the Dirichlet parameter
    max_nodes: int  # of each tree
    seed: int  # of the first tree; the others follow


class MondrianForest(OnlineClassifier):
    r"""Aggregated Mondrian forest: random trees that grow with the rows, each the mixture of all its prunings.

    **Choose it when** classes depend on sharp steps along columns, and you want probabilities from trees that grow with
    the stream, with nothing to tune.

    Choose it for numeric columns whose effect on the label is not linear: interactions, thresholds, classes in several
    clusters. It needs neither scaling nor tuning. Choose `OnlineLogisticRegression` for wide, sparse or text columns,
    or where effects are close to linear. It classifies; regression is not implemented yet.

    Each of the M trees partitions the rows by a Mondrian process ([AMF]_): a row at distance e from the box of a node's
    rows, summed over the columns, in units of their ranges so far, gets a leaf of its own with rate e in the time
    before the node's split; column and threshold are uniform on the distance. A node forecasts

    .. math:: p_v(k) = \frac{n_{v,k} + s}{n_v + Ks}

    from its class weights. A *pruning* is a subtree with the same root; its leaf that contains the row forecasts. The
    forecast of a tree is a mixture of all prunings, and that of a forest the mean of its trees:

    .. math:: P(k) = \frac{\sum_{\mathcal P} \pi(\mathcal P) \, e^{-L(\mathcal P)} \, p_{v(\mathcal P)}(k)}
              {\sum_{\mathcal P} \pi(\mathcal P) \, e^{-L(\mathcal P)}}

    with :math:`L(\mathcal P)` the log loss of the pruning so far. The sum over all prunings costs one step per node on
    the path of the row (context-tree recursion). A row is forecast by the tree without it, then may split it. There are
    two mixtures of the same trees:

    - a *cautious* one, which a split does not change: the first forecast of a new leaf is the one that the tree made
      for its row, and the prior :math:`\pi` of a pruning is divided among its refinements;
    - the *bold* one of [AMF]_, whose prior is :math:`2^{-\mathrm{nodes}}` in the present tree, and where the first row
      of a leaf costs nothing. It trusts deep trees more, and is often better, but has no guarantee.

    The forecast is their mixture again, with weights :math:`e^{-L}`. A node whose rows all have the same label is split
    by a row with another label only.

    **Guarantee.** With n rows of weight 1, the log loss is at most the mean over the trees of the loss of any pruning
    with m leaves, plus :math:`(2m+1) \ln 2 + (m-1) \ln(2n^2)` (`regretless.bounds.mondrian_pruning`), for every stream.
    `regretless.bounds.mondrian_constants` compares with prunings whose leaves have the best constant probabilities in
    hindsight. `regret_certificate()` is the exact difference to the best prunings, often negative because the mean of
    several trees is better than each. The bounds hold although splits depend on labels; the consistency theorems of
    [AMF]_ assume that they do not, and columns of a fixed range.

    **Memory.** A node has 8 (2d + K + 14) bytes, and a tree at most `max_nodes` nodes. A tree that is full no longer
    splits; its class weights, boxes and mixtures are updated as before, and the guarantee holds for it. A row needs
    time proportional to M (d + K) times the depth of the trees.

    Parameters
    ----------
    n_estimators : M, the number of trees.
    dirichlet : s, the weight of each class before the first row. None means 1/K.
    max_nodes : the largest number of nodes of a tree. None means as many as 1 GiB holds for all trees.
    random_state : seed of the trees. Draws depend only on the seed, the tree and the number of rows learned.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    n_nodes_ : the number of nodes of each tree.
    state_ : `nodes` (the trees), `sizes` (nodes per tree), `losses` (total log loss per tree, cautious), `played` (that
        of the cautious and of the bold forest), `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import MondrianForest
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(5000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> learner = MondrianForest()
    >>> p = learner.predict_then_learn(X, y)
    >>> print(f"log loss {learner.total_loss_ / len(y):.3f}, of one tree {learner.state_.losses.mean() / len(y):.3f}")
    log loss 0.126, of one tree 0.167
    >>> print(f"{learner.regret_certificate():.0f} above the best prunings <= {learner.regret_bound():.0f}")
    -176 above the best prunings <= 1839

    References
    ----------
    .. [AMF] Mourtada, Gaïffas and Scornet (2021), key `amf` of REFERENCES.bib; the recursion is of Willems, Shtarkov
       and Tjalkens (1995), key `context-tree`.
    """

    state_: Forest
    _constants: ForestConstants
    _one_step = True
    grows = ("nodes",)

    def __init__(
        self,
        n_estimators: int = 10,
        dirichlet: float | None = None,
        max_nodes: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.dirichlet = dirichlet
        self.max_nodes = max_nodes
        self.random_state = random_state

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        return {"MondrianForest": cls()}

    # ------------------------------------------------------------------ the numbers, and the start

    def _prepare(self, n_features: int, n_classes: int) -> ForestConstants:
        n_trees = validate.whole("n_estimators", self.n_estimators, 1)
        s = 1.0 / n_classes if self.dirichlet is None else validate.positive("dirichlet", self.dirichlet)
        if not LEAST_DIRICHLET <= s <= 1.0 / LEAST_DIRICHLET:
            raise ValueError(f"dirichlet={s} must be between {LEAST_DIRICHLET} and {1.0 / LEAST_DIRICHLET}.")
        if self.max_nodes is None:
            max_nodes = MEMORY // (8 * width(n_features, n_classes) * n_trees)
        else:
            max_nodes = min(validate.whole("max_nodes", self.max_nodes, 1), MOST_NODES // n_trees)
        seed = validate.whole("random_state", self.random_state, 0) * n_trees % validate.LARGEST_WHOLE
        return ForestConstants(s, max(1, max_nodes), seed)

    def _start(self, n_features: int, n_classes: int) -> Forest:
        return start(int(self.n_estimators), self._constants.max_nodes, n_features, n_classes)

    def _limits(self) -> tuple[float, float]:
        return math.inf, validate.reach(1.0)

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return self.n_estimators * width(n_features, n_classes) if isinstance(self.n_estimators, int) else 0

    def _check_state(self) -> None:
        check(self.state_, self._constants.max_nodes, self.n_features_in_)

    @property
    def n_nodes_(self) -> np.ndarray:
        """The number of nodes of each tree."""
        check_is_fitted(self, "state_")
        return self.state_.sizes.astype(int)

    # ------------------------------------------------------------------ certificate and bound

    @property
    def competes_with(self) -> None:  # type: ignore[override]
        """No set of weights: the best prunings of its trees."""
        return None

    def _best_prunings(self) -> Array:
        """The least loss of a pruning, and how many leaves it has, for each tree: (M, 2)."""
        nodes, sizes = self.state_.nodes, self.state_.sizes
        return np.array([best_pruning(nodes, i, int(size)) for i, size in enumerate(sizes)])

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """The loss so far minus the mean over the trees of that of their best prunings: an exact value."""
        check_is_fitted(self, "state_")
        return float(self.state_.tally[LOSS] - self._best_prunings()[:, 0].mean())

    def regret_bound(self, n: int | None = None) -> float:
        """An upper bound on the loss minus the mean over the trees of that of their best prunings."""
        check_is_fitted(self, "state_")
        rows = int(self.state_.tally[ROWS])
        require_unit_weights(self.state_.tally)
        if n is not None and n != rows:
            raise NoBound(
                "n: the bound depends on the size of the best prunings, so it exists only for the rows so far: leave n "
                "out, or call bounds.mondrian_pruning with a number of leaves."
            )
        leaves = self._best_prunings()[:, 1].tolist()
        each = [bounds.mondrian_pruning(rows, n_leaves=int(m)) for m in leaves]
        return math.fsum(each) / len(each)

    # ------------------------------------------------------------------ the game

    def _row_kernels(self) -> RowKernels | None:
        return self._by_kernels(run, forecast_block)

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        done, n = 0, X.shape[0]
        while done < n:
            done += run(self.state_, X[done:], Y[done:], weight[done:], self._constants, out[done:])
            if done < n:
                nodes = with_room(self.state_.nodes, self.state_.sizes.size, self._constants.max_nodes)
                self.state_ = self.state_._replace(nodes=nodes)

    def _forecast(self, X: Array, out: Array) -> None:
        forecast_block(self.state_, X, self._constants, out)


def start(n_trees: int, max_nodes: int, n_features: int, n_classes: int) -> Forest:
    """The forest before the first row."""
    room = n_trees * min(FIRST_NODES, max_nodes)
    table = np.zeros((room, width(n_features, n_classes)))
    return Forest(table, np.ones(n_trees), np.zeros(n_trees), np.zeros(2), np.zeros(TALLIES))


def with_room(nodes: Array, n_trees: int, max_nodes: int) -> Array:
    """The table with twice the room, as far as the trees may grow. (Where it is made depends on the rows only.)

    A large table is the beginning of one that is larger still, so that it is seldom copied: the system provides memory
    only where it is written, and new memory takes more time than all of the arithmetic on wide rows. (On 1,000 rows of
    256 columns a forest uses 45 MB; with a table that is copied on the way, it would use 65.)
    """
    most, wide = n_trees * max_nodes, nodes.shape[1]
    rows, behind = min(2 * len(nodes), most), nodes.base
    if not isinstance(behind, np.ndarray) or len(behind) < rows or not continues(nodes, behind):
        if 8 * rows * wide >= LARGE:
            behind = from_system(max(rows, min(AHEAD * rows, most, MEMORY // (8 * wide))), wide)
        else:
            behind = np.zeros((rows, wide))
        behind[: len(nodes)] = nodes
    return behind[:rows]


def from_system(rows: int, wide: int) -> Array:
    """Zeros, in pages of the usual size.

    NumPy asks for huge pages, which the system takes from memory that nobody has used for long, and a virtual machine
    has to get from its host: 1,000 rows of 256 columns took 40 to 130 microseconds each, and take 57 with usual pages.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):  # Windows
        return np.zeros((rows, wide))
    memory = mmap.mmap(-1, 8 * rows * wide, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.ndarray((rows, wide), buffer=memory)


def continues(nodes: Array, behind: Array) -> bool:
    """Whether the memory behind the table has empty rows after it. Rows are used in order, so the next one shows it."""
    same = behind.flags.c_contiguous and behind.shape[1:] == nodes.shape[1:] and behind.ctypes.data == nodes.ctypes.data
    return bool(same and len(behind) > len(nodes) and not behind[len(nodes)].any())


def check(forest: Forest, max_nodes: int, n_features: int) -> None:
    """Refuse a forest that no run can have led to."""
    state_checks.tally(forest.tally)
    rows, M = float(forest.tally[ROWS]), forest.sizes.size
    state_checks.whole("sizes", forest.sizes, max_nodes)
    state_checks.require(np.all(forest.sizes % 2 == 1), "sizes: a split adds two nodes")
    state_checks.require(
        forest.sizes.sum() <= len(forest.nodes) <= M * max_nodes, f"nodes has room for {len(forest.nodes)} nodes"
    )
    state_checks.require(forest.sizes.max() <= 2 * rows + 1, f"sizes: {rows:.0f} rows cannot make so many nodes")
    state_checks.sums("losses", np.append(forest.losses, forest.played))
    check_mean("losses", float(forest.losses.mean()), float(forest.played[0]), forest.tally)
    mixed = float(np.logaddexp.reduce(-forest.played) - math.log(2.0))
    check_mean("played", -mixed, float(forest.tally[LOSS]), forest.tally)
    check_trees(forest.nodes, forest.sizes, n_features, rows)
    total, heaviest = forest.nodes[:M, tree.TOTAL], validate.HEAVIEST if forest.tally[UNEVEN] else 1.0
    state_checks.within("nodes, weight of all rows", total, 0.0, rows * heaviest * (1 + state_checks.ROUNDING))
    state_checks.require(rows or not forest.nodes.any(), "nodes has entries without rows")


def check_mean(name: str, loss: float, mixed: float, tally: Array) -> None:
    """Refuse a loss of a mean of forecasts above the mean of the losses. (Of rows of weight 1: others may be.)"""
    slack = state_checks.ROUNDING * (1.0 + abs(loss))
    state_checks.require(tally[UNEVEN] or mixed <= loss + slack, f"{name}: the loss of a mean is larger than the mean")


def width(n_features: int, n_classes: int) -> int:
    """The numbers per node."""
    return COUNTS + n_classes + 2 * n_features


@merged_kernel
def forecast(forest: Forest, x: Array, constants: ForestConstants, scratch: Scratch, p: Array) -> None:
    """The probabilities of a row: the mixture of the cautious and the bold forest, which are `scratch.said`."""
    M, said = forest.sizes.size, scratch.said
    said[:] = 0.0
    spread, bold_spread = 0.0, 0.0
    tree.descend(forest.nodes, forest.sizes, x, scratch)
    for root in range(M):
        more, bold_more = tree.add_forecasts(forest.nodes, tree.path_in(scratch, root), constants.s, said)
        spread += more
        bold_spread += bold_more
    cautious = sigmoid(forest.played[1] - forest.played[0])
    for k in range(p.size):
        said[0, k] = (said[0, k] + spread) / M
        said[1, k] = (said[1, k] + bold_spread) / M
        p[k] = cautious * said[0, k] + (1.0 - cautious) * said[1, k]


@merged_kernel
def has_room(forest: Forest, constants: ForestConstants) -> bool:
    """Whether every tree can be split once more, or is at its largest size."""
    M, room = forest.sizes.size, forest.nodes.shape[0]
    return room >= np.sum(forest.sizes) + 2 * M or room == M * constants.max_nodes


@merged_kernel
def learn(
    forest: Forest, x: Array, y: Array, weight: float, p: Array, constants: ForestConstants, scratch: Scratch
) -> None:
    """Learn a row after its `forecast` p, with the same scratch. The forest has room."""
    nodes, sizes, losses, played, tally = forest
    K, row, own, ends, scale = y.size, tally[ROWS], scratch.own, scratch.ends, scratch.scale
    used = int(np.sum(sizes))
    if row == 0.0:
        for root in range(sizes.size):
            tree.begin(nodes, root, x, K)
    tree.measure(nodes, x, K, ends, scale)
    measured = tree.Measured(ends, scale)
    label = tree.sure_label(y)
    for root in range(sizes.size):
        path, full = tree.path_in(scratch, root), sizes[root] + 2.0 > constants.max_nodes
        draws = tree.Draws(constants.seed + root, row)
        copy, leaf, change = 0, 0, 1.0
        at, time, rate = tree.find_split(nodes, path, K, label, full, measured, draws)
        in_logs = tree.likelihoods(nodes, path, y, label, weight, constants.s, own)
        if at < path.size:
            v = path[at]
            cut = tree.draw_cut(nodes, v, K, measured, rate, draws)
            copy, leaf, change = tree.split(nodes, v, used, cut, time)
            copy_line(ends, nodes[leaf, COUNTS + K :])
            tree.extend(nodes[v, COUNTS + K :], ends)
            sizes[root] += 2.0
            used += 2
        losses[root] -= tree.learn_mixtures(nodes, path, own, in_logs, at, copy, change)
        if at < path.size:
            tree.end_path(scratch, root, at, leaf)
        tree.count(nodes, tree.path_in(scratch, root), y, label, weight, own, in_logs)
    for i in range(2):
        played[i] += weight * log_loss(scratch.said[i], y)
    loss = weight * log_loss(p, y)
    record(tally, weight, loss, loss, 0.0)


@kernel
def log_loss(p: Array, y: Array) -> float:
    """The log loss of probabilities."""
    loss = 0.0
    for k in range(y.size):
        if y[k] != 0.0:
            loss -= y[k] * math.log(p[k])
    return loss


@kernel
def run(forest: Forest, X: Array, Y: Array, weight: Array, constants: ForestConstants, out: Array) -> int:
    """The game over a block; returns the number of rows learned, fewer than all where the table has no more room."""
    scratch = tree.scratch_for(forest.nodes, forest.sizes.size, X.shape[1], Y.shape[1])
    for t in range(X.shape[0]):
        if weight[t] != 0.0 and not has_room(forest, constants):
            return t
        forecast(forest, X[t], constants, scratch, out[t])
        if weight[t] != 0.0:
            learn(forest, X[t], Y[t], weight[t], out[t], constants, scratch)
        np.log(out[t], out[t])
    return X.shape[0]


@kernel
def forecast_block(forest: Forest, X: Array, constants: ForestConstants, out: Array) -> None:
    """The log probabilities of a block, all from the same forest."""
    scratch = tree.scratch_for(forest.nodes, forest.sizes.size, X.shape[1], out.shape[1])
    for t in range(X.shape[0]):
        forecast(forest, X[t], constants, scratch, out[t])
        np.log(out[t], out[t])

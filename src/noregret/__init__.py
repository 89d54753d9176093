"""noregret: online learning that is provably almost as good as the best model chosen in hindsight."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> module. Imported on first use: numba and scikit-learn cost seconds that `import noregret` need not.
_HOME = {
    "OnlineLogisticRegression": "noregret.automatic.logistic",
    "AIOLI": "noregret.second_order.aioli",
    "FOLKLORE": "noregret.second_order.folklore",
    "GAF": "noregret.second_order.gaf",
    "ONS": "noregret.second_order.ons",
    "VovkAzouryWarmuth": "noregret.second_order.vovk",
    "Perceptron": "noregret.first_order.perceptron",
    "OGD": "noregret.first_order.ogd",
    "StronglyConvexOGD": "noregret.first_order.strongly_convex",
    "LinearizedFTRL": "noregret.first_order.ftrl",
    "MirrorDescent": "noregret.first_order.mirror_descent",
    "ExponentiatedGradient": "noregret.first_order.eg",
    "MirrorDescentAggregator": "noregret.first_order.aggregation",
    "stumps": "noregret.first_order.base_functions",
    "best_in_hindsight": "noregret.hindsight.comparator",
    "hindsight_curve": "noregret.hindsight.comparator",
    "Comparator": "noregret.hindsight.comparator",
    "best_constant": "noregret.hindsight.constants",
    "best_shifting_constants": "noregret.hindsight.constants",
    "play": "noregret.evaluate.play",
    "Trace": "noregret.evaluate.trace",
    "FTRL": "noregret.exact.ftrl",
    "FollowTheLeader": "noregret.exact.follow_the_leader",
    "KernelAIOLI": "noregret.exact.kernel_aioli",
    "AggregatingForecaster": "noregret.exact.aggregating",
    "Hedge": "noregret.reductions.hedge",
    "Mixture": "noregret.reductions.mixture",
    "Stack": "noregret.reductions.grid",
    "OneVsRest": "noregret.reductions.one_vs_rest",
    "OnlineToBatch": "noregret.reductions.online_to_batch",
    "merge": "noregret.reductions.merging",
    "fit_sharded": "noregret.reductions.sharding",
    "OnlineBoosting": "noregret.reductions.boosting",
    "BanditMulticlass": "noregret.reductions.bandit_multiclass",
    "EpsilonGreedy": "noregret.reductions.epsilon_greedy",
    "Banditron": "noregret.reductions.banditron",
    "Gaptron": "noregret.reductions.gaptron",
    "play_bandit": "noregret.evaluate.bandit",
    "BanditTrace": "noregret.evaluate.bandit",
    "load": "noregret.persist",
    "load_dataset": "noregret.streams.datasets",
    "streams": "noregret.streams",
    "BadRow": "noregret.errors",
    "NoBound": "noregret.errors",
    "NoCertificate": "noregret.errors",
}
__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from noregret import streams as streams
    from noregret.automatic.logistic import OnlineLogisticRegression as OnlineLogisticRegression
    from noregret.errors import BadRow as BadRow
    from noregret.errors import NoBound as NoBound
    from noregret.errors import NoCertificate as NoCertificate
    from noregret.evaluate.bandit import BanditTrace as BanditTrace
    from noregret.evaluate.bandit import play_bandit as play_bandit
    from noregret.evaluate.play import play as play
    from noregret.evaluate.trace import Trace as Trace
    from noregret.exact.aggregating import AggregatingForecaster as AggregatingForecaster
    from noregret.exact.follow_the_leader import FollowTheLeader as FollowTheLeader
    from noregret.exact.ftrl import FTRL as FTRL
    from noregret.exact.kernel_aioli import KernelAIOLI as KernelAIOLI
    from noregret.first_order.aggregation import MirrorDescentAggregator as MirrorDescentAggregator
    from noregret.first_order.base_functions import stumps as stumps
    from noregret.first_order.eg import ExponentiatedGradient as ExponentiatedGradient
    from noregret.first_order.ftrl import LinearizedFTRL as LinearizedFTRL
    from noregret.first_order.mirror_descent import MirrorDescent as MirrorDescent
    from noregret.first_order.ogd import OGD as OGD
    from noregret.first_order.perceptron import Perceptron as Perceptron
    from noregret.first_order.strongly_convex import StronglyConvexOGD as StronglyConvexOGD
    from noregret.hindsight.comparator import Comparator as Comparator
    from noregret.hindsight.comparator import best_in_hindsight as best_in_hindsight
    from noregret.hindsight.comparator import hindsight_curve as hindsight_curve
    from noregret.hindsight.constants import best_constant as best_constant
    from noregret.hindsight.constants import best_shifting_constants as best_shifting_constants
    from noregret.persist import load as load
    from noregret.reductions.bandit_multiclass import BanditMulticlass as BanditMulticlass
    from noregret.reductions.banditron import Banditron as Banditron
    from noregret.reductions.boosting import OnlineBoosting as OnlineBoosting
    from noregret.reductions.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
    from noregret.reductions.gaptron import Gaptron as Gaptron
    from noregret.reductions.grid import Stack as Stack
    from noregret.reductions.hedge import Hedge as Hedge
    from noregret.reductions.merging import merge as merge
    from noregret.reductions.mixture import Mixture as Mixture
    from noregret.reductions.one_vs_rest import OneVsRest as OneVsRest
    from noregret.reductions.online_to_batch import OnlineToBatch as OnlineToBatch
    from noregret.reductions.sharding import fit_sharded as fit_sharded
    from noregret.second_order.aioli import AIOLI as AIOLI
    from noregret.second_order.folklore import FOLKLORE as FOLKLORE
    from noregret.second_order.gaf import GAF as GAF
    from noregret.second_order.ons import ONS as ONS
    from noregret.second_order.vovk import VovkAzouryWarmuth as VovkAzouryWarmuth
    from noregret.streams.datasets import load_dataset as load_dataset


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'noregret' has no attribute {name!r}")
    home = import_module(_HOME[name])
    value = home if home.__name__ == f"noregret.{name}" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

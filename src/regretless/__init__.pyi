"""The public names, one line each. `__init__.py` reads this list and imports each name on first use."""

__version__: str
__all__: list[str]

from regretless import streams as streams
from regretless.core.errors import BadRow as BadRow
from regretless.core.errors import NoBound as NoBound
from regretless.core.errors import NoCertificate as NoCertificate
from regretless.core.learner import OnlineClassifier as OnlineClassifier
from regretless.core.learner import OnlineLearner as OnlineLearner
from regretless.core.learner import OnlineRegressor as OnlineRegressor
from regretless.core.merging import merge as merge
from regretless.core.persist import load as load
from regretless.evaluate import plots as plots
from regretless.evaluate.play import play as play
from regretless.evaluate.play_bandit import BanditTrace as BanditTrace
from regretless.evaluate.play_bandit import play_bandit as play_bandit
from regretless.evaluate.trace import Trace as Trace
from regretless.learners.bandits.bandit_multiclass import BanditMulticlass as BanditMulticlass
from regretless.learners.bandits.banditron import Banditron as Banditron
from regretless.learners.bandits.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from regretless.learners.bandits.gaptron import Gaptron as Gaptron
from regretless.learners.ensembles.boosting import OnlineBoosting as OnlineBoosting
from regretless.learners.ensembles.hedge import Hedge as Hedge
from regretless.learners.ensembles.mixture import Mixture as Mixture
from regretless.learners.ensembles.one_vs_rest import OneVsRest as OneVsRest
from regretless.learners.ensembles.stack import Stack as Stack
from regretless.learners.first_order.aggregator import MirrorDescentAggregator as MirrorDescentAggregator
from regretless.learners.first_order.base_functions import stumps as stumps
from regretless.learners.first_order.exponentiated_gradient import ExponentiatedGradient as ExponentiatedGradient
from regretless.learners.first_order.linearized_ftrl import LinearizedFTRL as LinearizedFTRL
from regretless.learners.first_order.mirror_descent import MirrorDescent as MirrorDescent
from regretless.learners.first_order.ogd import OGD as OGD
from regretless.learners.first_order.perceptron import Perceptron as Perceptron
from regretless.learners.first_order.strongly_convex import StronglyConvexOGD as StronglyConvexOGD
from regretless.learners.logistic.logistic import OnlineLogisticRegression as OnlineLogisticRegression
from regretless.learners.refitting.aggregating_forecaster import AggregatingForecaster as AggregatingForecaster
from regretless.learners.refitting.follow_the_leader import FollowTheLeader as FollowTheLeader
from regretless.learners.refitting.ftrl import FTRL as FTRL
from regretless.learners.refitting.kernel_aioli import KernelAIOLI as KernelAIOLI
from regretless.learners.second_order.aioli import AIOLI as AIOLI
from regretless.learners.second_order.folklore import FOLKLORE as FOLKLORE
from regretless.learners.second_order.gaf import GAF as GAF
from regretless.learners.second_order.ons import ONS as ONS
from regretless.learners.second_order.vovk import VovkAzouryWarmuth as VovkAzouryWarmuth
from regretless.learners.wrappers.online_to_batch import OnlineToBatch as OnlineToBatch
from regretless.learners.wrappers.sharding import fit_sharded as fit_sharded
from regretless.streams.datasets import load_dataset as load_dataset
from regretless.theory import bounds as bounds
from regretless.theory import domains as domains
from regretless.theory import hindsight as hindsight
from regretless.theory import losses as losses
from regretless.theory.hindsight.comparator import Comparator as Comparator
from regretless.theory.hindsight.comparator import best_in_hindsight as best_in_hindsight
from regretless.theory.hindsight.comparator import hindsight_curve as hindsight_curve
from regretless.theory.hindsight.constants import best_constant as best_constant
from regretless.theory.hindsight.constants import best_shifting_constants as best_shifting_constants

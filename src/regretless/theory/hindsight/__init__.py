"""The best model in hindsight, the comparator of regret, with a certified gap."""

from regretless.theory.hindsight.comparator import Comparator, best_in_hindsight, hindsight_curve
from regretless.theory.hindsight.constants import best_constant, best_shifting_constants

__all__ = ["Comparator", "best_constant", "best_in_hindsight", "best_shifting_constants", "hindsight_curve"]

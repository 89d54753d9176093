"""One function per theorem: the regret that it proves after n rows, with explicit constants.

One module per family of learners, with the names of the packages in `regretless.learners`. Numeric assumptions are
checked, and a violated one raises `NoBound`. docs/bounds.md is generated from the docstrings, which have a fixed
form: the bounded quantity and its theorem, the formula, **Order**, **Assumes**, an example. The order also appears in
the table of learners, for those that use the bound.
"""

from regretless.theory.bounds.bandits import bandit, banditron, gaptron, gaptron_bandit
from regretless.theory.bounds.batch import averaged_log_loss, sample_minmax, shifted_average
from regretless.theory.bounds.ensembles import (
    boosting,
    boosting_regression,
    boosting_regression_anytime,
    fixed_share,
    hedge,
    mixture,
    weak_learning,
)
from regretless.theory.bounds.first_order import (
    adagrad_norm,
    aggregation_excess_risk,
    aggregation_known_horizon,
    aggregation_lower_bound,
    averaging_excess_risk,
    averaging_sequences,
    descending_steps,
    dual_averaging,
    ftrl_proximal,
    gradient_descent,
    growing_balls,
    mirror_descent,
    online_gradient_descent,
    perceptron,
    strongly_convex,
)
from regretless.theory.bounds.refitting import aggregating, ftrl, kernel_aioli, kernel_gaf
from regretless.theory.bounds.second_order import (
    aioli,
    aioli_descent,
    aioli_excess_risk,
    aioli_inexact,
    folklore,
    gaf,
    gaf_general,
    gaf_logistic,
    gaf_sampled,
    online_newton_step,
    vovk_azoury_warmuth,
)
from regretless.theory.bounds.trees import mondrian_constants, mondrian_pruning

__all__ = [
    "adagrad_norm",
    "aggregating",
    "aggregation_excess_risk",
    "aggregation_known_horizon",
    "aggregation_lower_bound",
    "aioli",
    "aioli_descent",
    "aioli_excess_risk",
    "aioli_inexact",
    "averaged_log_loss",
    "averaging_excess_risk",
    "averaging_sequences",
    "bandit",
    "banditron",
    "boosting",
    "boosting_regression",
    "boosting_regression_anytime",
    "descending_steps",
    "dual_averaging",
    "fixed_share",
    "folklore",
    "ftrl",
    "ftrl_proximal",
    "gaf",
    "gaf_general",
    "gaf_logistic",
    "gaf_sampled",
    "gaptron",
    "gaptron_bandit",
    "gradient_descent",
    "growing_balls",
    "hedge",
    "kernel_aioli",
    "kernel_gaf",
    "mirror_descent",
    "mixture",
    "mondrian_constants",
    "mondrian_pruning",
    "online_gradient_descent",
    "online_newton_step",
    "perceptron",
    "sample_minmax",
    "shifted_average",
    "strongly_convex",
    "vovk_azoury_warmuth",
    "weak_learning",
]

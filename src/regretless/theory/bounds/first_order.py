"""First-order learners: Perceptron, gradient descent, FTRL-Proximal and mirror descent."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from regretless.core.errors import NoBound
from regretless.core.types import Array
from regretless.theory.bounds.assumptions import check_counts, check_nonnegative, check_positive


def _entropy(n_functions: int, radius: float) -> tuple[float, float]:
    """The spread and the strong convexity of the entropy on the weights >= 0 that sum to the radius."""
    if not 2 <= n_functions < math.inf:
        raise NoBound(f"the theorem needs two or more base functions; here n_functions={n_functions}.")
    check_positive(radius=radius)
    return radius * math.log(n_functions), 1 / radius


def perceptron(*, comparator_norm: float, feature_bound: float, hinge_loss: float) -> float:
    r"""The Perceptron's mistakes (`ogd-notes`, mistake bound).

    .. math:: L + (\lvert u\rvert R)^2 + \lvert u\rvert R \sqrt L

    where L is the total hinge loss of u, for any u and any number of rows.

    **Order.** O(√L) mistakes above the hinge loss L of any linear predictor.

    **Assumes.** rows of norm at most R.

    >>> perceptron(comparator_norm=2.0, feature_bound=1.0, hinge_loss=9.0)
    19.0
    """
    check_nonnegative(comparator_norm=comparator_norm, feature_bound=feature_bound, hinge_loss=hinge_loss)
    reach = comparator_norm * feature_bound
    return hinge_loss + reach**2 + reach * math.sqrt(hinge_loss)


def online_gradient_descent(n: int, *, radius: float, gradient_bound: float, step: float | None = None) -> float:
    r"""The regret of projected online gradient descent (`ogd-notes`, eq. (9)).

    .. math:: \left(\frac{2B^2}\eta + \eta G^2\right)\sqrt n

    with steps :math:`\eta/\sqrt t`. Without a step, the best one is used, :math:`\eta = \sqrt2 B/G`, which gives
    :math:`BG\sqrt{8n}`. (The text divides by n.)

    **Order.** O(B G √n) regret against weights of norm at most B.

    **Assumes.** convex losses with gradients of norm at most G; comparators of norm at most B.

    >>> round(online_gradient_descent(100, radius=1.0, gradient_bound=1.0), 4)
    28.2843
    """
    check_positive(radius=radius)
    check_nonnegative(n=n, gradient_bound=gradient_bound)
    if step is None:
        return radius * gradient_bound * math.sqrt(8 * n)
    check_positive(step=step)
    return (2 * radius**2 / step + step * gradient_bound**2) * math.sqrt(n)


def gradient_descent(n: int, *, comparator_norm: float, gradient_bound: float, step: float) -> float:
    r"""The regret of online gradient descent without projection (`ogd-notes`, (6) with a constant step).

    .. math:: \frac{|u|^2}{2\eta} + \frac{\eta n G^2}2

    because :math:`g_t \cdot (w_t - u)` is :math:`(|w_t - u|^2 - |w_{t+1} - u|^2)/(2\eta) + \eta|g_t|^2/2`, and the
    distances cancel in the sum.

    **Order.** O(B G √n) regret against weights of norm B, for the best step.

    **Assumes.** convex losses with gradients of norm at most G; a start at 0.

    >>> gradient_descent(100, comparator_norm=1.0, gradient_bound=1.0, step=0.1)
    10.0
    """
    check_positive(step=step)
    check_nonnegative(n=n, comparator_norm=comparator_norm, gradient_bound=gradient_bound)
    return comparator_norm**2 / (2 * step) + step * n * gradient_bound**2 / 2


def descending_steps(*, steps: ArrayLike, diameter: float, gradient_bound: float) -> float:
    r"""The regret of projected gradient descent with any non-increasing steps (`ogd-notes`, eq. (8)).

    .. math:: \frac{D^2}{2\eta_n} + \frac{G^2}2 \sum_{t \le n} \eta_t

    **Order.** O(D G √n) regret against a set of diameter D, for steps of order D / (G √t).

    **Assumes.** convex losses with gradients of norm at most G; a set of diameter D, a start in it; steps that do not
    grow.

    >>> descending_steps(steps=[1.0, 0.5, 0.5], diameter=2.0, gradient_bound=1.0)
    5.0
    """
    eta = _sequence("steps", steps)
    check_nonnegative(diameter=diameter, gradient_bound=gradient_bound)
    if np.any(np.diff(eta) > 0):
        raise NoBound("the theorem needs steps that do not grow; regret_certificate() covers all steps.")
    return diameter**2 / (2 * float(eta[-1])) + gradient_bound**2 * float(eta.sum()) / 2 if eta.size else 0.0


def growing_balls(*, steps: ArrayLike, radii: ArrayLike, comparator_norm: float, gradient_bound: float) -> float:
    r"""The regret of projected gradient descent on balls that grow (`mda`, Remark 3, by the proof of `ogd-notes`).

    .. math:: G \sum_{t < \tau} (U_t + |u|) + \frac{(U_n + |u|)^2}{2\eta_n} + \frac{G^2}2 \sum_{t=\tau}^n \eta_t

    where the weights of round t have norm at most :math:`U_t`, and :math:`\tau` is the first round after which u stays
    in the ball. Before :math:`\tau` a round costs at most :math:`|g_t||w_t - u|`; from then on no projection moves away
    from u.

    **Order.** O(G U_n² √n) regret against every u, after the rounds until the ball contains it.

    **Assumes.** convex losses with gradients of norm at most G; steps that do not grow, radii that do not shrink.

    >>> growing_balls(steps=[0.5, 0.5, 0.5], radii=[1.0, 2.0, 2.0], comparator_norm=2.0, gradient_bound=1.0)
    16.75
    """
    eta, U = _sequence("steps", steps), _sequence("radii", radii)
    check_nonnegative(comparator_norm=comparator_norm, gradient_bound=gradient_bound)
    if eta.size != U.size or np.any(np.diff(eta) > 0) or np.any(np.diff(U) < 0):
        raise NoBound("the theorem needs as many radii as steps, steps that do not grow and radii that do not shrink.")
    if not eta.size:
        return 0.0
    # Round t projects onto the ball of round t + 1; with the first such ball that contains u the argument starts.
    before = eta.size if comparator_norm > U[-1] else max(0, int(np.searchsorted(U, comparator_norm)) - 1)
    waiting = gradient_bound * float(np.sum(U[:before] + comparator_norm))
    if before == eta.size:
        return waiting
    reach = float(U[-1]) + comparator_norm
    return waiting + reach**2 / (2 * float(eta[-1])) + gradient_bound**2 * float(eta[before:].sum()) / 2


def adagrad_norm(*, diameter: float, squares: float, step: float) -> float:
    r"""The regret of projected descent with AdaGrad steps (`adagrad`, one step size for all weights).

    .. math:: \left(\frac{D^2}{2\eta} + \eta\right)\sqrt{\textstyle\sum_t \lvert g_t\rvert^2}

    with steps :math:`\eta/\sqrt{\sum_{s \le t}\lvert g_s\rvert^2}`.

    **Order.** O(D √(Σ g²)) regret against a set of diameter D.

    **Assumes.** convex losses; a set of diameter D.

    >>> round(adagrad_norm(diameter=2.0, squares=100.0, step=2**0.5), 4)
    28.2843
    """
    check_positive(step=step)
    check_nonnegative(diameter=diameter, squares=squares)
    return (diameter**2 / (2 * step) + step) * math.sqrt(squares)


def strongly_convex(n: int, *, sigma: float, gradient_bound: float) -> float:
    r"""The regret of online gradient descent on strongly convex losses (`ogd-notes`, strongly convex losses).

    .. math:: \frac{G^2}{2\sigma}(1 + \ln n)

    with steps :math:`1/(\sigma t)` and no projection. (The text divides by n.)

    **Order.** O(log n) regret against every linear predictor.

    **Assumes.** losses with all eigenvalues of the Hessian at least sigma; gradients of norm at most G at the iterates.

    >>> round(strongly_convex(100, sigma=1.0, gradient_bound=1.0), 4)
    2.8026
    """
    check_positive(sigma=sigma)
    check_nonnegative(n=n, gradient_bound=gradient_bound)
    return gradient_bound**2 * (1 + math.log(n)) / (2 * sigma) if n else 0.0


def ftrl_proximal(
    n: int,
    *,
    n_features: int,
    radius: float,
    gradient_bound: float,
    alpha: float,
    beta: float,
    l1: float,
    l2: float,
) -> float:
    r"""FTRL-Proximal's regret on a box (`ftrl-survey`, Theorem 2 with its rates).

    .. math:: d\left[\left(\frac{2B^2}\alpha + \alpha\right) G\sqrt n + \frac{B^2\beta}{2\alpha} + l_1 B
        + \frac{l_2 B^2}2\right]

    **Order.** O(d B G √n) regret against weights in the box [-B, B]^d.

    **Assumes.** convex losses; each weight within [-B, B], each entry of a gradient within [-G, G].

    >>> round(ftrl_proximal(100, n_features=1, radius=1.0, gradient_bound=1.0,
    ...                     alpha=2**0.5, beta=0.0, l1=0.0, l2=0.0), 4)
    28.2843
    """
    check_counts(n_features=n_features)
    check_positive(radius=radius, alpha=alpha)
    check_nonnegative(n=n, gradient_bound=gradient_bound, beta=beta, l1=l1, l2=l2)
    price = radius**2 * beta / (2 * alpha) + l1 * radius + l2 * radius**2 / 2
    return n_features * ((2 * radius**2 / alpha + alpha) * gradient_bound * math.sqrt(n) + price)


def mirror_descent(n: int, *, spread: float, strong_convexity: float, gradient_bound: float, step: float) -> float:
    r"""The regret of mirror descent with a constant step, lazy or eager (`mda`, Proposition 2).

    .. math:: \frac V\eta + \frac{\eta n G^2}{2\sigma}

    where V is the largest minus the smallest value of the proxy. (Proposition 2 is about the lazy scheme.)

    **Order.** O(√n) regret against the set of the mirror map; O(√(n log d)) for the entropy.

    **Assumes.** convex losses with gradients of dual norm at most G; a sigma-strongly convex proxy; a start at its
    minimum.

    >>> mirror_descent(100, spread=0.5, strong_convexity=1.0, gradient_bound=1.0, step=0.1)
    10.0
    """
    check_positive(strong_convexity=strong_convexity, step=step)
    check_nonnegative(n=n, spread=spread, gradient_bound=gradient_bound)
    return spread / step + step * n * gradient_bound**2 / (2 * strong_convexity)


def dual_averaging(
    n: int, *, spread: float, strong_convexity: float, gradient_bound: float, temperature: float | None = None
) -> float:
    r"""The regret of lazy mirror descent with growing temperature (`mda`, (26), for sums instead of means).

    .. math:: \left(\beta_0 V + \frac{G^2}{\sigma\beta_0}\right)\sqrt{n+1}

    with :math:`\beta_t = \beta_0\sqrt{t+1}`. Without a temperature, the best :math:`\beta_0` is used, which gives
    :math:`2G\sqrt{V/\sigma}\sqrt{n+1}`.

    **Order.** O(√n) regret against the set of the mirror map; O(√(n log d)) for the entropy.

    **Assumes.** convex losses with gradients of dual norm at most G; a sigma-strongly convex proxy; a start at its
    minimum.

    >>> dual_averaging(99, spread=1.0, strong_convexity=1.0, gradient_bound=1.0)
    20.0
    """
    check_positive(strong_convexity=strong_convexity)
    check_nonnegative(n=n, spread=spread, gradient_bound=gradient_bound)
    if temperature is None:
        return 2 * gradient_bound * math.sqrt(spread / strong_convexity) * math.sqrt(n + 1)
    check_positive(temperature=temperature)
    return (temperature * spread + gradient_bound**2 / (strong_convexity * temperature)) * math.sqrt(n + 1)


def averaging_excess_risk(
    t: int,
    *,
    spread: float,
    strong_convexity: float,
    gradient_bound: float,
    temperature: float | None = None,
    known_horizon: bool = False,
) -> float:
    r"""The expected excess risk of mirror descent with averaging (`mda`, Theorem 2, (26) and (38)).

    .. math:: \left(\beta_0 V + \frac{G^2}{\sigma\beta_0}\right)\frac{\sqrt{t+1}}t

    for the mean of t weight vectors, and :math:`2G\sqrt{V/\sigma}\sqrt{t+1}/t` for the best :math:`\beta_0`. With a
    constant temperature :math:`\beta`, chosen for a known horizon, (26) is :math:`\beta V/t + G^2/(2\sigma\beta)`. The
    best :math:`\beta`, (37), gives (38): :math:`G\sqrt{2V/(\sigma t)}`.

    **Order.** O(1 / √t) excess risk over the set of the mirror map.

    **Assumes.** independent rows of one distribution; a convex loss with gradients of dual norm at most G (in mean
    square); a sigma-strongly convex proxy; a start at its minimum; t >= 1.

    >>> round(averaging_excess_risk(99, spread=1.0, strong_convexity=1.0, gradient_bound=1.0), 4)
    0.202
    """
    if not 1 <= t < math.inf:
        raise NoBound(f"the theorem is about the mean of at least one weight vector; here t={t}.")
    V = {"spread": spread, "strong_convexity": strong_convexity, "gradient_bound": gradient_bound}
    sums = dual_averaging(t, **V, temperature=temperature)
    if not known_horizon:
        return sums / t
    if temperature is None:
        return gradient_bound * math.sqrt(2 * spread / (strong_convexity * t))
    return temperature * spread / t + gradient_bound**2 / (2 * strong_convexity * temperature)


def averaging_sequences(
    *, steps: ArrayLike, temperatures: ArrayLike, spread: float, strong_convexity: float, gradient_bound: float
) -> float:
    r"""The expected excess risk of mirror descent with any steps and temperatures (`mda`, Proposition 3, (26)).

    .. math:: \frac{1}{\sum_{i \le t}\gamma_i} \left(\beta_t V
        + \frac{G^2}{2\sigma} \sum_{i \le t} \frac{\gamma_i^2}{\beta_{i-1}}\right)

    for the mean of t weight vectors, weighted by :math:`\gamma_1..\gamma_t`, and temperatures
    :math:`\beta_0..\beta_t`. With constant steps the regret of the lazy scheme after t rows is at most t times this.

    **Order.** O(1 / √t) excess risk over the set of the mirror map, for temperatures of order √t.

    **Assumes.** independent rows of one distribution (not for the regret); a convex loss with gradients of dual norm at
    most G; a sigma-strongly convex proxy; a start at its minimum; positive steps, temperatures that do not fall.

    >>> given = {"spread": 1.0, "strong_convexity": 1.0, "gradient_bound": 1.0}
    >>> averaging_sequences(steps=[1.0, 1.0], temperatures=[1.0, 1.0, 2.0], **given)
    1.5
    """
    gamma, beta = _sequence("steps", steps), _sequence("temperatures", temperatures)
    check_positive(strong_convexity=strong_convexity)
    check_nonnegative(spread=spread, gradient_bound=gradient_bound)
    if gamma.size == 0 or beta.size != gamma.size + 1:
        raise NoBound(f"the theorem needs t >= 1 steps and t + 1 temperatures; here {gamma.size} and {beta.size}.")
    if np.any(np.diff(beta) < 0):
        raise NoBound("the theorem needs temperatures that do not fall; regret_certificate() covers all temperatures.")
    noise = gradient_bound**2 / (2 * strong_convexity) * float(np.sum(gamma * gamma / beta[:-1]))
    return (float(beta[-1]) * spread + noise) / float(gamma.sum())


def _sequence(name: str, numbers: ArrayLike) -> Array:
    """The numbers, if all are positive and finite."""
    found = np.asarray(numbers, dtype=np.float64)
    if found.ndim != 1 or not np.all((found > 0) & np.isfinite(found)):
        raise NoBound(f"{name} must be a sequence of positive finite numbers for the theorem to hold.")
    return found


def aggregation_excess_risk(t: int, *, n_functions: int, radius: float, gradient_bound: float) -> float:
    r"""The expected excess risk of base functions mixed by mirror descent with averaging (`mda`, Theorem 1).

    .. math:: 2BG\sqrt{\ln M}\frac{\sqrt{t+1}}t

    for the entropy on the weights >= 0 that sum to B, and the mean of t weight vectors: `averaging_excess_risk` with
    :math:`V/\sigma = B^2\ln M`. For functions within [-K, K] and a margin loss phi, G is the largest
    :math:`K\lvert\phi'\rvert` over margins within [-KB, KB].

    **Order.** O(√(log M / t)) excess risk over the convex combinations of M functions.

    **Assumes.** independent rows of one distribution; a convex loss; M >= 2 functions; t >= 1; the temperature (18).

    >>> round(aggregation_excess_risk(1000, n_functions=50, radius=1.0, gradient_bound=1.0), 4)
    0.1252
    """
    V, sigma = _entropy(n_functions, radius)
    return averaging_excess_risk(t, spread=V, strong_convexity=sigma, gradient_bound=gradient_bound)


def aggregation_lower_bound(t: int, *, n_functions: int, radius: float, gradient_bound: float) -> float:
    r"""The expected excess risk that every method has on some distribution (`mda`, Remark 2, by Fano's inequality).

    .. math:: BG \max_{0 < \epsilon < 1} \epsilon \left(1 - \frac{t D(\epsilon) + \ln 2}{\ln M}\right), \qquad
        D(\epsilon) = \frac\epsilon2 \ln\frac{1+\epsilon}{1-\epsilon}

    For M functions with values :math:`\pm1`, independent and fair, let y agree with one of them, the J-th, with
    probability :math:`(1+\epsilon)/2`. Under a loss with slope -G in the margin, weights theta >= 0 of sum B have the
    excess risk :math:`G\epsilon(B - \theta_J)`. A draw from :math:`\theta/B` guesses J, so by Fano's inequality
    :math:`E(1 - \theta_J/B) \ge 1 - (I + \ln 2)/\ln M`, and the information I of t rows is at most t times the
    divergence D between two of the distributions. The hinge loss has this slope for B <= 1.

    **Order.** Ω(√(log M / t)) excess risk over the convex combinations of M functions, for t >= log M.

    **Assumes.** a method that sees t independent rows; M >= 3 functions; a loss that is linear in the margin.

    >>> round(aggregation_lower_bound(1000, n_functions=50, radius=1.0, gradient_bound=1.0), 4)
    0.018
    """
    if not 3 <= n_functions < math.inf:
        raise NoBound(f"the lower bound needs three or more base functions; here n_functions={n_functions}.")
    check_positive(radius=radius, gradient_bound=gradient_bound)
    check_counts(t=t)
    L = math.log(n_functions)

    from scipy.optimize import brentq  # here: it takes a tenth of the time of a first forecast

    def slope(x: float) -> float:  # of the function to be maximised, which is concave
        return 1 - math.log(2) / L - t / L * (2 * x * math.atanh(x) + x * x / (1 - x * x))

    x = float(brentq(slope, 0.0, 1 - 1e-9, xtol=1e-16))
    return radius * gradient_bound * x * (1 - (t * x * math.atanh(x) + math.log(2)) / L)


def aggregation_known_horizon(t: int, *, n_functions: int, radius: float, gradient_bound: float) -> float:
    r"""The expected excess risk of base functions mixed by mirror descent, known horizon (`mda`, (38)).

    .. math:: BG\sqrt{\frac{2\ln M}t}

    with the constant temperature (37).

    **Order.** O(√(log M / t)) excess risk over the convex combinations of M functions.

    **Assumes.** independent rows of one distribution; a convex loss; M >= 2 functions; t >= 1; the temperature (37).

    >>> round(aggregation_known_horizon(1000, n_functions=50, radius=1.0, gradient_bound=1.0), 4)
    0.0885
    """
    V, sigma = _entropy(n_functions, radius)
    return averaging_excess_risk(t, spread=V, strong_convexity=sigma, gradient_bound=gradient_bound, known_horizon=True)

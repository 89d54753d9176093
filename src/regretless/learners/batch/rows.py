"""BatchPredictor: the base class of predictors that are fitted once: rows in, forecasts out with a progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from regretless.core.interrupts import stretches
from regretless.core.progress import progress_bar
from regretless.core.rows import validate
from regretless.core.rows.inputs import readable_rows
from regretless.core.scikit_learn import BaseEstimator, validate_data
from regretless.core.turns import TakesTurns
from regretless.core.types import Array

LONG = 1.0  # seconds: a longer call shows a progress bar
FIRST_ROWS = 32  # the rows from which the time of a call is estimated


class BatchPredictor(TakesTurns, BaseEstimator):
    """A predictor with `fit` alone. A call of it that fails changes nothing."""

    regularization: float | None

    @classmethod
    def _example(cls) -> Self:
        """A small example for tests."""
        return cls()

    def _all_or_nothing(self, fit: Callable[..., None], *given: Any) -> Self:
        """Forget what was fitted and call `fit`; after an error everything is as before."""
        before = dict(vars(self))
        try:
            for name in [name for name in before if name.endswith("_")]:
                delattr(self, name)
            fit(*given)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _rows(self, X: Any, reset: bool) -> Array:
        """The rows in the form of the kernels."""
        rows = validate_data(
            self,
            readable_rows(X, None if reset else getattr(self, "feature_names_in_", None)),
            reset=reset,
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
        )
        return validate.writable(rows)

    def _check(self, X: Array, weight: Array, feature_bound: float) -> None:
        """Refuse rows that are not finite, longer than the bound, or too long for floating point numbers."""
        lam = 1.0 if self.regularization is None else float(self.regularization)
        validate.rows(X, weight, feature_bound, validate.reach(lam), getattr(self, "feature_names_in_", None))

    def _forecast_in_parts(self, n: int, forecast: Callable[[slice], None]) -> None:
        """Call `forecast` for all of n rows in parts, between which Ctrl-C takes effect."""
        began = time.perf_counter()
        forecast(slice(0, min(FIRST_ROWS, n)))
        rest = max(n - FIRST_ROWS, 0)
        long = (time.perf_counter() - began) * rest / FIRST_ROWS > LONG
        with progress_bar(long, rest, transient=True) as bar:
            for part in stretches(rest, slow=True):
                forecast(slice(FIRST_ROWS + part.start, FIRST_ROWS + part.stop))
                bar.advance(part.stop - part.start)

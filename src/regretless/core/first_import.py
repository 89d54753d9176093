"""What makes a first import fast: nothing that a first forecast does without is imported, and no garbage is looked for.

SciPy and scikit-learn import modules for functions that no learner needs: `scipy.stats` for one, `numpy.f2py` because
they copy all names of NumPy, pandas for none. So stand-ins are in their place meanwhile. Afterwards the first use of
such a module, here or in these libraries, imports it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class StandIn(ModuleType):
    """A module that is imported when another thread, or an import that is not expected, uses it."""

    def __getattr__(self, name: str) -> Any:
        self.step_aside()
        return getattr(import_module(self.__name__), name)

    def stand_in(self) -> None:
        """Be what imports of the module find."""
        sys.modules[self.__name__] = self
        package, name = self._place()
        if package is not None and name not in vars(package):
            vars(package)[name] = self

    def step_aside(self) -> None:
        """Let the next import find the module itself."""
        if sys.modules.get(self.__name__) is self:
            sys.modules.pop(self.__name__, None)
        package, name = self._place()
        if package is not None and vars(package).get(name) is self:
            vars(package).pop(name, None)

    def _place(self) -> tuple[ModuleType | None, str]:
        """The package that has the module, if it is imported, and the module's name there."""
        package, _, name = self.__name__.rpartition(".")
        return sys.modules.get(package), name


@contextmanager
def put_off(*names: str) -> Iterator[None]:
    """Inside, `import name` does not import these modules."""
    stand_ins = [StandIn(name) for name in names if name not in sys.modules]
    for each in stand_ins:
        each.stand_in()
    try:
        yield
    finally:
        for each in stand_ins:
            each.step_aside()


@contextmanager
def without_garbage() -> Iterator[None]:
    """Inside, no garbage is looked for: imports leave none, and looking for it takes a tenth of their time.

    Afterwards all that was made counts as old, or else it would be looked at now.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # nobody else has frozen anything
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()


@contextmanager
def of_a_public_name() -> Iterator[None]:
    """Around the import of a module with a public name."""
    with without_garbage():
        import numpy  # noqa: F401  (before stand-ins for its parts)

        with put_off("numpy.f2py", "numpy.testing"):
            yield

"""Stored: the interface between learners and model files, and the registry of learners by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from regretless.core.files import state_checks
from regretless.core.scikit_learn import BaseEstimator
from regretless.core.turns import TakesTurns

if TYPE_CHECKING:
    from regretless.core.rows.labels import Labels
    from regretless.core.setting import Setting


class Recipe:
    """A frozen dataclass that can be a hyper-parameter, such as a domain or a schedule. Model files store its fields.

    Subclasses are found by name once their module is imported, which the modules of the learners that use them do.
    """

    recipes: ClassVar[dict[str, type[Recipe]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Recipe.recipes[cls.__name__] = cls


class ByName:
    """A hyper-parameter made of a user's functions. Model files store its name only, never code.

    `load` looks the name up among the objects created in the process, which `announce` registers.
    """

    announced: ClassVar[dict[str, ByName]] = {}
    name: str

    def announce(self) -> None:
        """Register under the name; a later object of the same name replaces this one."""
        ByName.announced[self.name] = self


class _Untouched:
    """What `Stored._untouched_on_error` returns. (A generator would take three times as long per call.)"""

    __slots__ = ("attributes", "before")

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes, self.before = attributes, attributes.copy()

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: Any, *details: Any) -> None:
        if error is not None:
            self.attributes.clear()
            self.attributes.update(self.before)


class Stored(TakesTurns, BaseEstimator, ABC):
    """A learner that can be saved to a file and continue from it, bit for bit."""

    state_: Any
    classes_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray
    registry: ClassVar[dict[str, type[Stored]]] = {}

    _labels: Labels
    _constants: Any
    params_: dict[str, Any]  # the hyper-parameters since the first row
    _learned: ClassVar[tuple[str, ...]] = ("_labels", "_constants")  # private names that `fit` clears
    grows: ClassVar[tuple[str, ...]] = ()  # fields of the state that get longer as rows are learned
    holds: ClassVar[dict[str, str]] = {}  # parameter with learners -> attribute with their fitted clones
    holds_copies: ClassVar[bool] = False  # whether the fitted clones are copies of one learner, the parameter
    held_classes: ClassVar[int | None] = None  # number of classes of the learners that it holds; None: its own
    fewest_classes: ClassVar[int] = 2

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Stored.registry[cls.__name__] = cls

    def save(self, path: str | Path) -> None:
        """Write hyper-parameters, classes and state to one file, without pickle. `regretless.load` reads it."""
        from regretless.core.files.persist import save

        save(self, path)

    def to_bytes(self) -> bytes:
        """What `save` writes, as bytes, in a shorter form. `from_bytes` reads it."""
        from regretless.core.files.persist import to_bytes

        return to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The learner that `to_bytes` wrote; it continues where it stopped, bit for bit. Nothing in `data` is run.

        >>> import regretless
        >>> learner = regretless.AIOLI().fit([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"])
        >>> again = regretless.AIOLI.from_bytes(learner.to_bytes())
        >>> again.predict_one([1.0, 0.0])
        np.str_('yes')
        """
        from regretless.core.files.persist import from_bytes

        learner = from_bytes(data)
        if not isinstance(learner, cls):
            raise ValueError(f"these bytes hold a {type(learner).__name__}, not a {cls.__name__}.")
        return learner

    def _untouched_on_error(self) -> _Untouched:
        """Restore all attributes if an error is raised inside. (Arrays changed in place are not restored.)"""
        return _Untouched(self.__dict__)

    def _forget(self) -> None:
        """Delete everything learned; hyper-parameters stay."""
        learned = {name for kind in type(self).__mro__ for name in vars(kind).get("_learned", ())}
        for name in [name for name in vars(self) if name.endswith("_") or name in learned]:
            delattr(self, name)

    # ------------------------------------------------------------------ methods that a learner may override

    @classmethod
    def _example(cls) -> Self:
        """A small configuration that can be played, for the warm-up and for tests."""
        return cls()

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        """The configurations that enter a race on such a stream, by name. (Default: none.)"""
        return {}

    @abstractmethod
    def _begin(self, n_features: int) -> None:
        """Validate the hyper-parameters and create the state before the first row."""

    def _begin_like(self, other: Any, labels: Labels | None) -> Self:
        """Begin on the columns of another learner, which has validated them, with these classes."""
        self.n_features_in_ = other.n_features_in_
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_ = other.feature_names_in_
        if labels is not None:
            self._meet_classes(labels)
        self._begin(other.n_features_in_)
        return self

    def _meet_classes(self, labels: Labels) -> None:
        """Store the classes."""
        self.classes_ = labels.classes
        self._labels = labels

    def _aside(self) -> dict[str, Any]:
        """Data that a model file stores in addition to parameters, classes and state, as JSON."""
        return {}

    def _take_up(self, aside: dict[str, Any]) -> None:
        """Restore the data of `_aside`, before the state is created; refuse invalid data."""
        state_checks.require(not aside, f"aside={aside!r} is not expected")

    def _check_state(self) -> None:
        """Refuse a state that no run can produce (`state_checks.py`): a file may contain anything."""

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        """The approximate size of a fresh state, before the parameters are validated; 0 if unknown.

        A file with fewer numbers is refused before memory is allocated for them.
        """
        return 0

    def _grown(self, field: str, n: int) -> int:
        """The length of a growing field of the state after n rows."""
        return n

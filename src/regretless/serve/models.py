"""ModelSpec: what a model is: its name, learner, columns and classes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import regretless
from regretless.core.learner import OnlineLearner
from regretless.evaluate.recipe import learner_of
from regretless.serve.settings import Limits

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
DEFAULT_NAME = "default"
DEFAULT_MODEL = "OnlineLogisticRegression"


class ModelSpec(NamedTuple):
    """A model, and its learner before the first event.

    `recipe` is a learner as text or a model file. A model file brings its columns and classes.
    """

    name: str
    recipe: str
    features: int | list[str]
    classes: list[Any]
    learner: Any

    @classmethod
    def of(
        cls,
        recipe: str = DEFAULT_MODEL,
        features: int | list[str] | None = None,
        classes: list[Any] | None = None,
        *,
        name: str = DEFAULT_NAME,
        limits: Limits | None = None,
        files: bool = False,
    ) -> ModelSpec:
        """A model from a recipe, or, where `files` allows it, from a model file."""
        if not NAME.fullmatch(name):
            raise ValueError(f"name={name!r}: use up to 64 letters, digits, points, lines and underscores.")
        _require_utf8(recipe, *(features if isinstance(features, list) else []), *(classes or []))
        if files and Path(recipe).is_file():
            learner, features, classes = _from_file(recipe, features, classes)
        else:
            learner, features, classes = _begun(learner_of(recipe), features, classes)
        limits = limits or Limits()
        _check_sizes(learner, features, classes, limits)
        return cls(name, recipe, features, classes, learner)


def _begun(learner: Any, features: int | list[str] | None, classes: list[Any] | None) -> tuple[Any, Any, list[Any]]:
    if features is None or classes is None:
        raise ValueError("a new model needs features (names, or a number of columns) and classes.")
    if not isinstance(features, int):
        features = list(features)
        if not all(type(name) is str for name in features) or len({*features}) < len(features) or not features:
            raise ValueError("features must be different names as text, or a number of columns.")
    _require_probabilities(learner)
    columns = features if isinstance(features, int) or learner.reads_tables else len(features)
    OnlineLearner.begin(learner, columns, classes)  # learners that take gradients have another `begin`, for these
    _require_probabilities(learner)
    return learner, features, learner.classes_.tolist()


def _from_file(path: str, features: Any, classes: Any) -> tuple[Any, Any, list[Any]]:
    learner = regretless.load(path)
    _require_probabilities(learner)
    names = getattr(learner, "feature_names_in_", None)
    own = int(learner.n_features_in_) if names is None else [str(name) for name in names]
    if features is not None and features != own:
        if type(own) is not int or isinstance(features, int) or len(features) != own:
            raise ValueError(f"{path} has the features {own}: omit them.")
        own = features if not learner.reads_tables else own
    if classes is not None and classes != learner.classes_.tolist():
        raise ValueError(f"{path} has the classes {learner.classes_.tolist()}: omit them.")
    return learner, own, learner.classes_.tolist()


def _require_utf8(*texts: Any) -> None:
    for text in texts:
        try:
            str(text).encode()
        except UnicodeEncodeError:
            raise ValueError(f"{ascii(text)[:100]} is not Unicode text: it has half of a character.") from None


def _require_probabilities(learner: Any) -> None:
    if not hasattr(learner, "predict_proba_one"):
        raise ValueError(f"{type(learner).__name__} does not forecast probabilities of classes: choose a classifier.")
    if getattr(learner, "on_bad_row", "error") != "error":
        raise ValueError('a service refuses bad rows, so on_bad_row must be "error".')


def _check_sizes(learner: Any, features: int | list[str], classes: list[Any], limits: Limits) -> None:
    n = features if isinstance(features, int) else len(features)
    if n > limits.columns:
        raise ValueError(f"the model has {n} columns; the limit is {limits.columns}.")
    if len(classes) > limits.classes:
        raise ValueError(f"the model has {len(classes)} classes; the limit is {limits.classes}.")
    if getattr(learner, "max_categories", 0) > limits.categories:
        raise ValueError(f"max_categories={learner.max_categories}; the limit is {limits.categories}.")
    texts = [*(features if isinstance(features, list) else []), *(label for label in classes if type(label) is str)]
    if any(len(text) > limits.text for text in texts):
        raise ValueError(f"the name of a feature or a class is longer than {limits.text} characters.")
    if len({*class_names(classes)}) < len(classes):
        raise ValueError(f"classes={classes}: two of them are the same as text.")


def class_names(classes: list[Any]) -> list[str]:
    """The classes as the names in JSON objects."""
    if not all(type(label) in (str, int, float, bool) and label == label for label in classes):
        raise ValueError(f"classes={classes}: use texts, numbers, true or false.")
    if any(type(label) is float and not math.isfinite(label) for label in classes):
        raise ValueError(f"classes={classes}: numbers must be finite.")
    return [label if type(label) is str else msgspec.json.encode(label).decode() for label in classes]


def class_of(text: str) -> Any:
    """A class from the command line: a number if it looks like one, else text.

    >>> class_of("1"), class_of("0.5"), class_of("yes"), class_of("nan")
    (1, 0.5, 'yes', 'nan')
    """
    for kind in (int, float):
        try:
            found: Any = kind(text)
        except ValueError:
            continue
        if math.isfinite(found):
            return found
    return text

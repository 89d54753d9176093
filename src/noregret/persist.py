"""Save and load learners, without pickle.

A model file is an `.npz` archive (a zip of `.npy` arrays, readable from any language that reads them): one
array per field of `state_`, one for the classes, and `header.json` with the format version, the learner's
name and its hyper-parameters. A learner that holds others has theirs beside its own, under the name of the
parameter and, in a list, a number (`learners.0.state.P`, `base.state.P`). The same learner always gives the
same bytes. Loading builds the learner anew from its hyper-parameters and accepts only arrays of the shapes it
expects; no code from the file is ever run.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from uuid import uuid4

import numpy as np

import noregret
from noregret.base import OnlineLearner
from noregret.labels import Labels, as_objects
from noregret.reductions.bandit import BanditLearner

if TYPE_CHECKING:
    from numpy.typing import NDArray

Learner = OnlineLearner | BanditLearner
FORMAT = 1
EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed time stamp, so that equal models are equal files


def save(learner: Learner, path: str | Path) -> None:
    """Write a learner to `path`, all or nothing."""
    if not hasattr(learner, "state_"):
        raise ValueError(f"this {type(learner).__name__} has learned nothing yet: there is no state to save.")
    header: dict[str, Any] = {
        "format": FORMAT,
        "noregret": noregret.__version__,
        **_recipe(learner),
        "n_features": int(learner.n_features_in_),
    }
    arrays = _arrays(learner)
    if hasattr(learner, "feature_names_in_"):
        header["feature_names"] = [str(name) for name in learner.feature_names_in_]
    if hasattr(learner, "classes_"):
        if learner.classes_.dtype.kind == "O":
            header["classes"] = [_plain("classes", label) for label in learner.classes_.tolist()]
        else:
            arrays["classes"] = learner.classes_
    if aside := learner._aside():
        header["aside"] = aside
    path = Path(path)
    temporary = path.with_name(f"{path.name}.{uuid4().hex}.part")  # with the rights of any new file
    try:
        with open(temporary, "xb") as file, zipfile.ZipFile(file, "w") as archive:
            text = json.dumps(header, indent=1, sort_keys=True)
            archive.writestr(zipfile.ZipInfo("header.json", EPOCH), text)
            for name, array in arrays.items():
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, array, allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(f"{name}.npy", EPOCH), buffer.getvalue())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _recipe(learner: Learner) -> dict[str, Any]:
    """What builds the learner, and the learners that it holds."""
    recipe: dict[str, Any] = {
        "learner": type(learner).__name__,
        "params": {
            name: _plain(name, value) for name, value in learner._played_with.items() if name not in learner._holds
        },
        "state": list(learner.state_._fields),
    }
    if learner._holds:
        held = {name: getattr(learner, at) for name, at in learner._holds.items()}
        recipe["holds"] = {
            name: list(map(_recipe, found)) if isinstance(found, list) else _recipe(found)
            for name, found in held.items()
        }
    return recipe


def _arrays(learner: Learner, prefix: str = "") -> dict[str, NDArray[Any]]:
    """The state's arrays, then those of the learners it holds."""
    arrays = {f"{prefix}state.{name}": array for name, array in learner.state_._asdict().items()}
    for part, held in _held(learner, prefix):
        arrays |= _arrays(held, part)
    return arrays


def _held(learner: Learner, prefix: str) -> Iterator[tuple[str, Learner]]:
    """The learners that it holds, and how the names of their arrays begin."""
    for name, attribute in learner._holds.items():
        held = getattr(learner, attribute)
        if not isinstance(held, list):
            yield f"{prefix}{name}.", held
            continue
        for i, each in enumerate(held):
            yield f"{prefix}{name}.{i}.", each


def _plain(name: str, value: Any) -> Any:
    """A value that JSON keeps exactly."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, _recipes().get(type(value).__name__, ())):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}  # type: ignore[arg-type]
        return {"recipe": type(value).__name__} | {key: _plain(name, part) for key, part in fields.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(name, part) for part in value]
    if isinstance(value, tuple):
        return {"tuple": _plain(name, list(value))}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    raise ValueError(
        f"{name}={value!r} cannot be saved: only numbers, text, True, False, None, and the sets, schedules and stumps "
        "of noregret can."
    )


def _recipes() -> dict[str, type]:
    """The frozen dataclasses that may be hyper-parameters."""
    from noregret import domains
    from noregret.first_order import base_functions, schedules

    kinds = [*get_args(domains.Domain), *schedules.Schedule.__subclasses__(), base_functions.Stumps]
    return {kind.__name__: kind for kind in kinds}


def _param(value: Any) -> Any:
    """What `_plain` made plain."""
    if isinstance(value, list):
        return [_param(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_param(value["tuple"]))
    if "bytes" in value:
        return bytes.fromhex(value["bytes"])
    return _recipes()[value["recipe"]](**{key: _param(part) for key, part in value.items() if key != "recipe"})


def load(path: str | Path) -> Any:
    """Read a learner written by `save`; it goes on where it stopped, bit for bit.

    >>> import tempfile, noregret
    >>> learner = noregret.AIOLI().fit([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(f"{folder}/model.npz")
    ...     again = noregret.load(f"{folder}/model.npz")
    >>> (again.predict_proba([[1.0, 0.0]]) == learner.predict_proba([[1.0, 0.0]])).all()
    np.True_
    """
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("header.json"))
            arrays = {
                name.removesuffix(".npy"): _array(archive.read(name))
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a noregret model file: {error}") from error
    try:
        return _build(header, arrays, str(path))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from error


def _array(data: bytes) -> NDArray[Any]:
    array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return array


def _build(header: dict[str, Any], arrays: dict[str, NDArray[Any]], path: str) -> Learner:
    if header["format"] != FORMAT:
        raise ValueError(
            f"{path} has format {header['format']} and this noregret {noregret.__version__} reads format {FORMAT}: "
            f"it was written by noregret {header.get('noregret')}."
        )
    learner = _unlearned(header, path)
    learner.n_features_in_ = int(header["n_features"])
    if "feature_names" in header:
        learner.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    if "classes" in arrays or "classes" in header:
        classes = (
            arrays["classes"] if "classes" in arrays else as_objects([_param(label) for label in header["classes"]])
        )
        learner._meet_classes(Labels(classes))
    learner._take_up(header.get("aside", {}))
    learner._begin(learner.n_features_in_)
    _restore(learner, arrays, "", path)
    return learner


def _unlearned(recipe: dict[str, Any], path: str) -> Learner:
    """The learner as it was before the first row."""
    name = recipe["learner"]
    kind = getattr(noregret, name) if name in noregret.__all__ else OnlineLearner.registry.get(name)
    if not (isinstance(kind, type) and issubclass(kind, Learner)):
        raise ValueError(
            f"{path} holds a {name!r}: no learner of that name is known. Import the module that defines it first."
        )
    held = {
        at: [_unlearned(part, path) for part in parts] if isinstance(parts, list) else _unlearned(parts, path)
        for at, parts in recipe.get("holds", {}).items()
    }
    if getattr(kind, "_copies", False):
        held = {at: copies[0] for at, copies in held.items()}
    return kind(**{name: _param(value) for name, value in recipe["params"].items()}, **held)


def _restore(learner: Learner, arrays: dict[str, NDArray[Any]], prefix: str, path: str) -> None:
    """Put the arrays in the place of a fresh state, if they are of its kind; so with the learners it holds."""
    fresh = learner.state_._asdict()
    growing = [field for field in fresh if field in learner._growing]
    n = arrays[f"{prefix}state.{growing[0]}"].shape[0] if growing else 0
    for field, expected in fresh.items():
        found = arrays[f"{prefix}state.{field}"]
        shape = (learner._grown(field, n), *expected.shape[1:]) if field in growing else expected.shape
        if found.shape != shape or found.dtype != expected.dtype or not np.isfinite(found).all():
            raise ValueError(
                f"{path} is damaged: {prefix}state {field!r} is a {found.dtype} array of shape {found.shape}; a finite "
                f"{expected.dtype} array of shape {shape} was expected."
            )
    learner.state_ = type(learner.state_)(*(np.ascontiguousarray(arrays[f"{prefix}state.{f}"]) for f in fresh))
    for part, held in _held(learner, prefix):
        _restore(held, arrays, part, path)

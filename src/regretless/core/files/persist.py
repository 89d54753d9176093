"""Save and load learners, without pickle.

A model file is an `.npz` archive (a zip of `.npy` arrays, readable from any language that reads them): one
array per field of `state_`, one for the classes, and `header.json` with the format version, the learner's
name and its hyper-parameters. A learner that holds others stores theirs too, prefixed by the name of the
parameter and, in a list, a number (`estimators.0.state.P`, `estimator.state.P`). Equal learners give equal bytes.
Loading builds a new learner from its hyper-parameters and accepts only arrays of the expected shapes with
values that a run can produce. No code from the file is run, and no size is trusted before as many bytes are
present.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

import regretless
from regretless.core.files import archive, packed
from regretless.core.files.stored import ByName, Recipe, Stored
from regretless.core.rows import validate
from regretless.core.rows.labels import Labels, as_objects

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = 3
MOST_OUTLINES, LARGEST_OUTLINE = 64, 1 << 16  # headers of small learners that `from_bytes` remembers; bytes of each
NEVER_CHANGED = {"state_", "params_", "classes_", "_labels", "feature_names_in_"}  # in place, or copied
# By header: the header, the forms of its arrays, the learner before its first row, and its classes as bytes.
_outlines: dict[bytes, tuple[dict[str, Any], packed.Forms, Any, bytes | None]] = {}
MOST_NESTED = 8  # levels of learners within learners


def save(learner: Stored, path: str | Path) -> None:
    """Write a learner to `path`, atomically."""
    header, arrays = _contents(learner)
    path = Path(path)
    temporary = path.with_name(f"{path.name}.{uuid4().hex}.part")  # with the permissions of any new file
    try:
        with open(temporary, "xb") as file:
            archive.write(file, header, arrays)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def to_bytes(learner: Stored) -> bytes:
    """A learner as bytes."""
    return packed.pack(*_contents(learner))


def from_bytes(data: bytes) -> Any:
    """The learner that `to_bytes` wrote; it continues where it stopped, bit for bit."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"from_bytes takes the bytes that to_bytes() wrote, not a {type(data).__name__}.")
    with _reports_damage("these bytes", "are", "These are not the bytes of a regretless learner, or were"):
        return _unpacked(bytes(data))


def _unpacked(data: bytes) -> Stored:
    """The learner in packed bytes. If one with the same header was read before, only its arrays are new."""
    text = packed.header_of(data)
    if (known := _outlines.get(text)) is not None:
        header, forms, outline, classes = known
        arrays = packed.arrays_of(data, len(text), forms)
        same = classes is None or arrays["classes"].tobytes() == classes
        if same and _class_named(header["learner"]) is type(outline):
            learner = copy.copy(outline)
            learner.params_ = dict(outline.params_)
            _restore(learner, header, arrays, "")
            return learner
    header, forms = packed.read_header(text)
    arrays = packed.arrays_of(data, len(text), forms)
    learner = _begun(header, arrays)
    outline = copy.copy(learner)
    _complete(learner, header, arrays)
    if len(data) <= LARGEST_OUTLINE and _is_plain(outline):
        if len(_outlines) >= MOST_OUTLINES:
            _outlines.clear()
        classes = arrays["classes"].tobytes() if "classes" in arrays else None
        _outlines[text] = header, forms, outline, classes
    return learner


def _is_plain(learner: Stored) -> bool:
    """Whether everything but its state can be shared with another learner of the same header: numbers and text."""
    values = list(learner.params_.values())
    for name, value in vars(learner).items():
        if name not in NEVER_CHANGED:
            values += value if isinstance(value, tuple) else [value]
    return not (learner.holds or learner.grows) and all(isinstance(value, str | float | int | None) for value in values)


def _contents(learner: Stored) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a learner."""
    if not hasattr(learner, "state_"):
        raise ValueError(f"this {type(learner).__name__} is not fitted: there is no state to save.")
    header: dict[str, Any] = {
        "format": FORMAT,
        "regretless": regretless.__version__,
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
    return header, arrays


def _recipe(learner: Stored, depth: int = 1) -> dict[str, Any]:
    """The description from which the learner, and those it holds, can be built."""
    _require_shallow(depth)
    recipe: dict[str, Any] = {
        "learner": type(learner).__name__,
        "params": {name: _plain(name, value) for name, value in learner.params_.items() if name not in learner.holds},
        "state": list(learner.state_._fields),
    }
    if learner.holds:
        held = {name: getattr(learner, at) for name, at in learner.holds.items()}
        recipe["holds"] = {
            name: [_recipe(each, depth + 1) for each in found] if isinstance(found, list) else _recipe(found, depth + 1)
            for name, found in held.items()
        }
    return recipe


def _arrays(learner: Stored, prefix: str = "") -> dict[str, NDArray[Any]]:
    """The arrays of the state, then those of the learners it holds."""
    arrays = {f"{prefix}state.{name}": array for name, array in learner.state_._asdict().items()}
    for part, held in _held(learner, prefix):
        arrays |= _arrays(held, part)
    return arrays


def _held(learner: Stored, prefix: str) -> Iterator[tuple[str, Stored]]:
    """The learners that it holds, with the prefixes of their arrays."""
    for name, attribute in learner.holds.items():
        held = getattr(learner, attribute)
        if not isinstance(held, list):
            yield f"{prefix}{name}.", held
            continue
        for i, each in enumerate(held):
            yield f"{prefix}{name}.{i}.", each


def _plain(name: str, value: Any) -> Any:
    """A value that JSON represents exactly."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, ByName):
        return {"name": value.name}
    if isinstance(value, Recipe):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}  # type: ignore[arg-type]
        return {"recipe": type(value).__name__} | {key: _plain(name, part) for key, part in fields.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(name, part) for part in value]
    if isinstance(value, tuple):
        return {"tuple": _plain(name, list(value))}
    if isinstance(value, dict):
        return {"pairs": [[_plain(name, key), _plain(name, part)] for key, part in value.items()]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    raise ValueError(
        f"{name}={value!r} cannot be saved: only numbers, text, True, False, None, named losses, and the domains, "
        "schedules and stumps of regretless can."
    )


def _param(value: Any) -> Any:
    """The inverse of `_plain`."""
    if isinstance(value, list):
        return [_param(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_param(_field(value, "tuple", list)))
    if "pairs" in value:
        return {_param(key): _param(part) for key, part in _field(value, "pairs", list)}
    if "bytes" in value:
        return bytes.fromhex(_field(value, "bytes", str))
    if "name" in value and "recipe" not in value:
        name = _field(value, "name", str)
        if name not in ByName.announced:
            raise Unreadable(
                f"uses {reprlib.repr(name)}, which a program defines and no file contains: create it first, or import "
                "the module that does."
            )
        return ByName.announced[name]
    name = _field(value, "recipe", str)
    if name not in Recipe.recipes:
        raise ValueError(f"{reprlib.repr(name)} is not a domain, schedule or stump of regretless")
    return Recipe.recipes[name](**{key: _param(part) for key, part in value.items() if key != "recipe"})


def load(path: str | Path) -> Any:
    """Read a learner written by `save`; it continues where it stopped, bit for bit.

    >>> import tempfile, regretless
    >>> learner = regretless.AIOLI().fit([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(f"{folder}/model.npz")
    ...     again = regretless.load(f"{folder}/model.npz")
    >>> (again.predict_proba([[1.0, 0.0]]) == learner.predict_proba([[1.0, 0.0]])).all()
    np.True_
    """
    with (
        open(path, "rb") as file,  # a missing or unreadable file is an OSError
        _reports_damage(str(path), "is", "It is not a regretless model file, or was"),
    ):
        return _build(*archive.read(file))


@contextmanager
def _reports_damage(what: str, are: str, not_ours: str) -> Iterator[None]:
    """Errors that name the source of the data and say what to do."""
    try:
        yield
    except Unreadable as error:
        raise ValueError(f"{what} {error}") from error
    except DAMAGE as error:
        why = str(error) if isinstance(error, ValueError) else repr(error)
        raise ValueError(
            f"{what} {are} damaged: {why.rstrip('.')}. {not_ours} changed later: use another copy, "
            "or train and save the model again."
        ) from error


class Unreadable(ValueError):
    """A file that may be valid but cannot be read here."""


# Raised when a learner is built from invalid data: parameters and arrays of the wrong kind, infinite numbers. Any other
# exception would be a bug.
DAMAGE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, MemoryError)


def _require_shallow(depth: int) -> None:
    if depth > MOST_NESTED:
        raise ValueError(f"learners are nested more than {MOST_NESTED} levels deep")


def _build(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Stored:
    """The learner from a header and arrays, all checked against each other before use."""
    learner = _begun(header, arrays)
    _complete(learner, header, arrays)
    return learner


def _begun(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Stored:
    """The learner of a header, before its first row."""
    if header.get("format") != FORMAT:
        raise Unreadable(
            f"has format {reprlib.repr(header.get('format'))}, but regretless {regretless.__version__} reads format "
            f"{FORMAT}: another version wrote it. Load it there, or train and save the model again."
        )
    learner = _unlearned(header)
    learner.n_features_in_ = n_features = validate.whole("n_features", header["n_features"], 1)
    if "feature_names" in header:
        learner.feature_names_in_ = np.array(_names(header["feature_names"], n_features), dtype=object)
    n_classes = _meet_classes(learner, header, arrays)
    learner._take_up(_field(header, "aside", dict, {}))
    _require_bytes(learner, header, arrays, "", n_features, n_classes)
    learner._begin(n_features)
    return learner


def _complete(learner: Stored, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Give a learner without rows the state in the arrays."""
    strangers = arrays.keys() - _arrays(learner).keys() - {"classes"}
    _restore(learner, header, arrays, "")
    if strangers:
        raise ValueError(f"{sorted(strangers)[0]!r} belongs to no learner in the file")


def _field(recipe: dict[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """A field of the header, of the expected type."""
    found = recipe.get(name, default)
    if not isinstance(found, kind):
        raise ValueError(f"{name}={reprlib.repr(found)} in the header is not a {kind.__name__}")
    return found


def _names(names: Any, n_features: int) -> list[str]:
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names={reprlib.repr(names)} are not the names of {n_features} features")
    return names


def _meet_classes(learner: Stored, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> int:
    """Set the learner's classes; returns their number, 1 for a regressor."""
    if "classes" not in arrays and "classes" not in header:
        return 1
    if getattr(learner, "_regresses", False) or not hasattr(learner, "_meet_classes"):
        raise ValueError("it has classes, but the learner is a regressor")
    found = arrays.get("classes")
    if found is None:
        found = as_objects([_param(label) for label in _field(header, "classes", list)])
    if found.ndim != 1 or found.size < learner.fewest_classes:
        raise ValueError(f"classes has the shape {found.shape}: at least {learner.fewest_classes} are needed")
    labels = Labels(found)
    if len(labels.code) != found.size or not all(label == label for label in labels.code):
        raise ValueError("a class occurs twice, or is NaN")
    learner._meet_classes(labels)
    return max(2, found.size)


def _unlearned(recipe: Any, depth: int = 1) -> Stored:
    """The learner as it was before the first row."""
    _require_shallow(depth)
    if not isinstance(recipe, dict):
        raise ValueError(f"{reprlib.repr(recipe)} does not describe a learner")
    name = _field(recipe, "learner", str)
    kind = _class_named(name)
    if not (isinstance(kind, type) and issubclass(kind, Stored)):
        raise Unreadable(f"contains a {reprlib.repr(name)}: unknown learner. Import the module that defines it first.")
    held: dict[str, Any] = {}
    for at, parts in _field(recipe, "holds", dict, {}).items():
        several = isinstance(parts, list)
        built = [_unlearned(part, depth + 1) for part in (parts if several else [parts])]
        held[at] = built if several and not kind.holds_copies else built[0]
    params = _field(recipe, "params", dict)
    learner = kind(**{name: _param(value) for name, value in params.items()}, **held)
    if held.keys() != learner.holds.keys():
        raise ValueError(f"a {name} holds learners as {list(learner.holds)}, not as {list(held)}")
    return learner


def _class_named(name: str) -> Any:
    return getattr(regretless, name) if name in regretless.__all__ else Stored.registry.get(name)


def _require_bytes(
    learner: Stored,
    recipe: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    prefix: str,
    n_features: int,
    n_classes: int,
) -> None:
    """Refuse sizes that do not match the file, before memory is allocated for them."""
    needed = learner._state_numbers(n_features, n_classes)
    there = sum(array.size for name, array in arrays.items() if name.startswith(f"{prefix}state."))
    if needed > there:
        raise ValueError(
            f"a {type(learner).__name__} with {n_features} features, {n_classes} classes and these parameters has "
            f"{needed:,} numbers, but the file has {there:,}"
        )
    classes = n_classes if learner.held_classes is None else learner.held_classes
    for name in learner.holds:
        recipes, given = recipe["holds"][name], getattr(learner, name)
        if learner.holds_copies:
            n = learner._n_copies(n_classes)
            alike = [_without_seed(each) for each in recipes] if isinstance(recipes, list) else []
            if len(alike) != n or any(each != alike[0] for each in alike):
                raise ValueError(f"a {type(learner).__name__} with these parameters has {n} copies of one learner")
            given = [given] * len(recipes)
        for part, each, held in _numbered(prefix, name, recipes, given):
            _require_bytes(held, each, arrays, part, n_features, classes)


def _without_seed(recipe: dict[str, Any]) -> dict[str, Any]:
    """The description without the seed, which differs between stages."""
    params = {name: value for name, value in recipe["params"].items() if name != "random_state"}
    return recipe | {"params": params}


def _numbered(prefix: str, name: str, recipes: Any, held: Any) -> Iterator[tuple[str, dict[str, Any], Stored]]:
    """For each held learner: the prefix of its arrays, its description, and the learner."""
    if not isinstance(recipes, list):
        yield f"{prefix}{name}.", recipes, held
        return
    for i, (recipe, each) in enumerate(zip(recipes, held, strict=True)):
        yield f"{prefix}{name}.{i}.", recipe, each


def _restore(learner: Stored, recipe: dict[str, Any], arrays: dict[str, NDArray[Any]], prefix: str) -> None:
    """Replace the fresh state by the arrays, if their shapes, types and values are valid; also in held learners."""
    fresh = learner.state_._asdict()
    if recipe.get("state") != list(fresh):
        raise ValueError(f"{prefix}state has the fields {reprlib.repr(recipe.get('state'))}, not {list(fresh)}")
    missing = [field for field in fresh if f"{prefix}state.{field}" not in arrays]
    if missing:
        raise ValueError(f"{prefix}state {missing[0]!r} is missing")
    growing = [field for field in fresh if field in learner.grows]
    n = arrays[f"{prefix}state.{growing[0]}"].shape[:1] if growing else ()
    for field, expected in fresh.items():
        found = arrays[f"{prefix}state.{field}"]
        shape = (
            (*(learner._grown(field, length) for length in n), *expected.shape[1:])
            if field in growing
            else expected.shape
        )
        if found.shape != shape or found.dtype != expected.dtype or not np.isfinite(found).all():
            raise ValueError(
                f"{prefix}state {field!r} is a {found.dtype} array of shape {found.shape}; a finite {expected.dtype} "
                f"array of shape {shape} was expected"
            )
    learner.state_ = type(learner.state_)(*(arrays[f"{prefix}state.{field}"] for field in fresh))
    for name, attribute in learner.holds.items():
        for part, each, held in _numbered(prefix, name, recipe["holds"][name], getattr(learner, attribute)):
            _restore(held, each, arrays, part)
    try:
        learner._check_state()
    except ValueError as error:
        raise ValueError(f"{prefix}state is invalid: {error}") from error

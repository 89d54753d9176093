"""Recipes: what `regretless run` needs to play a line of the leaderboard again, on the same file."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from regretless.core.files.stored import Stored
from regretless.core.learner import OnlineLearner
from regretless.core.scikit_learn import clone, is_regressor
from regretless.evaluate.race.games import as_signs
from regretless.streams import Dataset, Stream
from regretless.streams.preparation import Preparation

FOLDER = "recipes"


class Recipe:
    """A learner before its first row, and the preparation of its rows."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            found = json.loads(text)
            self.preparation = Preparation.from_json(found["preparation"])
            self.classes = list(found["classes"])
            self.model = base64.b64decode(found["model"], validate=True)
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"the recipe is damaged: {error}. Run the race again.") from error

    def learner(self) -> Any:
        """The learner, which has learned nothing."""
        return Stored.from_bytes(self.model)

    def rows(self, X: Any) -> Any:
        """Rows of a file as they were in the race."""
        return self.preparation.rows(X)

    def targets(self, y: Any) -> Any:
        """Labels as they were in the race: -1 and 1 for learners that forecast numbers."""
        return as_signs(y, self.classes) if self._takes_numbers else y

    @cached_property
    def _takes_numbers(self) -> bool:
        return bool(is_regressor(self.learner()))


def recipes_of(stream: Stream, source: Any, field: Mapping[str, Any]) -> str | None:
    """The recipes for the learners of this library, as JSON, if the stream was read from a file; else None."""
    if not isinstance(source, Dataset) or source.preparation is None:
        return None
    models = {}
    for name, learner in field.items():
        if isinstance(learner, OnlineLearner):
            with suppress(ValueError):  # it does not support the stream, and the leaderboard says why
                classes = None if is_regressor(learner) else stream.classes
                begun = clone(learner).begin(stream.X.shape[1], classes=classes)
                models[name] = base64.b64encode(begun.to_bytes()).decode()
    found = {"preparation": source.preparation.to_json(), "classes": stream.classes, "models": models}
    return json.dumps(found) + "\n"


def recipe_of(folder: Path, data: str, name: str) -> Recipe:
    """The recipe of a line of the leaderboard, for a file with the same columns."""
    files = sorted((folder / FOLDER).glob("*.json"))
    if not files:
        raise ValueError(
            f"{folder} has no recipes: it is not the folder of a race, or the race was on no file. Run `regretless "
            f"race {data}` first."
        )
    alike = [file for file in files if file.stem == Path(data).name.split(".")[0]]
    if len(files) > 1 and not alike:
        raise ValueError(f"{folder} has recipes for {', '.join(file.stem for file in files)}, and none for {data}.")
    file = (alike or files)[0]
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        models = dict(found.pop("models"))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{file} is damaged ({error!r}): run the race again.") from error
    by_name = {each.lower(): each for each in models}
    if name.lower() not in by_name:
        raise ValueError(f"{file} has no learner {name!r}: choose one of {', '.join(repr(each) for each in models)}.")
    return Recipe(json.dumps(found | {"model": models[by_name[name.lower()]]}))

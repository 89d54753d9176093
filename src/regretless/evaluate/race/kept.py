"""The finished games of a race in a file, so that an interrupted race can go on.

The first line says which race it is; each other line is a game. A line that is cut off, by a crash, is ignored.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from regretless.evaluate.race.games import Game, Refusal

Key = tuple[str, int, str]  # stream, order, learner


class Kept:
    """A file of finished games.

    Parameters
    ----------
    path : the file, or None: then nothing is kept.
    resume : whether to go on with the race in the file. Otherwise it is replaced.
    """

    def __init__(self, path: Path | None, resume: bool = False) -> None:
        self.path = path
        self.plan: Any = None
        self.games: dict[Key, Game | Refusal] = {}
        self._race: Any = None
        if path is not None and resume:
            self._read(path)

    def _read(self, path: Path) -> None:
        if not path.is_file():
            raise ValueError(f"there is nothing to resume in {path.parent}: no race was interrupted there.")
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            first = json.loads(lines[0])
            self._race, self.plan = first["race"], first["plan"]
            for i, line in enumerate(lines[1:]):
                try:
                    found = json.loads(line)
                except ValueError:
                    if i == len(lines) - 2:  # the process was stopped while it wrote
                        break
                    raise
                self.games[(found["stream"], found["order"], found["learner"])] = _game(found)
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged ({error!r}): start again without --resume.") from error

    def begin(self, race: Any, plan: Any) -> None:
        """Name the race; an error if the file belongs to another one."""
        race = json.loads(json.dumps(race))
        if self._race is not None:
            differing = [name for name in race if race[name] != self._race.get(name)]
            if differing:
                raise ValueError(
                    f"the interrupted race had another {differing[0]}: pass the same options, or start again without "
                    "--resume."
                )
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"race": race, "plan": plan})
            finished = [_line(key, game) for key, game in self.games.items()]
            self.path.write_text("\n".join([text, *finished]) + "\n", encoding="utf-8")

    def add(self, key: Key, game: Game | Refusal) -> None:
        """Write a finished game."""
        self.games[key] = game
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(key, game) + "\n")
                file.flush()
                os.fsync(file.fileno())

    def clear(self) -> None:
        """Remove the file: the race is finished."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _line(key: Key, game: Game | Refusal) -> str:
    values = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in asdict(game).items()}
    return json.dumps({"stream": key[0], "order": key[1], **values})


def _game(found: dict[str, Any]) -> Game | Refusal:
    values = {name: value for name, value in found.items() if name not in ("stream", "order")}
    if "why" in values:
        return Refusal(**values)
    values["rows"] = np.array(values["rows"], dtype=np.int64)
    for name in ("log_loss", "error"):
        values[name] = None if values[name] is None else np.array(values[name], dtype=np.float64)
    values["regret"] = tuple(values["regret"])
    return Game(**values)

"""`regretless run`, stopped at any moment: gone on with, it ends with the files of a run that was not stopped."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

pytestmark = pytest.mark.services

HOW = [signal.SIGKILL, signal.SIGINT, signal.SIGTERM]
OPTIONS = ["--model", "AIOLI(radius=2)", "--on-bad", "quarantine", "--checkpoint-every", "100", "--target", "y"]


def table(rng: np.random.Generator) -> str:
    """Up to 10,000 rows of numbers, which are three blocks, some of them bad."""
    lines = ["a,b,y"]
    for a, b in rng.normal(size=(int(rng.choice([50, 5000, 10_000])), 2)):
        lines.append("1,2" if rng.random() < 0.01 else f"{a:.3f},{b:.3f},{'no' if a > b else 'yes'}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def start():
    """Starts the command in a process that has all imports done."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["warm_run"])
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)  # of the fork server

        def started(source: Path, folder: Path, at: int = 0, how: int = 0):
            from warm_run import play

            words = ["run", str(source), *OPTIONS, "--out", str(folder), *(["--resume"] if can_resume(folder) else [])]
            process = context.Process(target=play, args=(words, str(folder), at, how, f"{folder}.txt"))
            process.start()
            return process

        yield started


def can_resume(folder: Path) -> bool:
    """Whether a run has begun there: until then there is nothing to go on from."""
    return (folder / "unfinished" / "run.json").exists() or (folder / "summary.json").exists()


def code(process) -> int:
    process.join(300)
    assert process.exitcode is not None
    return process.exitcode


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_run_that_is_stopped_anywhere_goes_on(cases, start, tmp_path):
    for rng in cases:
        here = tmp_path / str(cases.played)
        here.mkdir()
        source, whole, parts = here / "rows.csv", here / "whole", here / "parts"
        source.write_text(table(rng))
        uninterrupted = start(source, whole)
        for _ in range(int(rng.integers(1, 4))):
            at, how = int(rng.integers(1, 60)), HOW[rng.integers(3)]
            stopped = start(source, parts, at, how)
            if rng.random() < 0.3:  # by somebody else, at any time
                time.sleep(rng.uniform(0.1, 1.0))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(stopped.pid, how)
            assert code(stopped) in (0, 1, 4, 130, -how), (parts.with_suffix(".txt").read_text(), at, how)
        assert code(start(source, parts)) == 0, (here / "parts.txt").read_text()
        assert code(uninterrupted) == 0, (here / "whole.txt").read_text()
        assert files(parts) == files(whole)

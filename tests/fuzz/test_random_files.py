"""Damaged model files are refused by a ValueError, or what they hold goes on without NaN: never a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

WORKER = Path(__file__).with_name("file_worker.py")


@pytest.mark.skipif(sys.platform == "win32", reason="the worker measures its memory by POSIX's means")
def test_damaged_files_are_refused_or_go_on(cases, tmp_path):
    words = tmp_path / "stderr"  # a file: a pipe that nobody reads is full after a few thousand cases
    with (
        words.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as worker,
    ):
        assert worker.stdin is not None and worker.stdout is not None
        assert worker.stdout.readline() == "ready\n", words.read_text()
        for _ in cases:
            print(cases.seed, file=worker.stdin, flush=True)
            outcome = worker.stdout.readline().strip()
            if not outcome:
                worker.stdin.close()
                pytest.fail(f"seed {cases.seed}: the process died, {worker.wait()}. {words.read_text()[-2000:]}")
            if outcome not in ("refused", "loaded"):
                worker.stdin.close()
                pytest.fail(f"seed {cases.seed}: {outcome}")
        worker.stdin.close()

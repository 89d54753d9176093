"""The report of `regretless run`: what it says, and what it takes to make it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
testing = pytest.importorskip("typer.testing")

from regretless.cli import app  # noqa: E402
from regretless.evaluate.run import hindsight, report  # noqa: E402
from regretless.evaluate.run.folder import Folder  # noqa: E402
from regretless.evaluate.run.run import Run, Settings  # noqa: E402


def command(*arguments: object, given: str | None = None):
    return testing.CliRunner().invoke(app, [str(each) for each in arguments], input=given)


def words(n: int = 200, kinds: int = 20) -> str:
    """One column of text, which is encoded as many columns."""
    rng = np.random.default_rng(0)
    lines = [f"k{k},{'no' if k % 3 == e else 'yes'}\n" for k, e in rng.integers((kinds, 3), size=(n, 2))]
    return "word,y\n" + "".join(lines)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_limit_for_comparators_counts_encoded_columns(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text(words())
    monkeypatch.setattr(hindsight, "END", 200 * 10)  # between one column and its twenty categories
    done = command("run", tmp_path / "rows.csv", "--target", "y", "--json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.output)
    assert summary["regret"] is None and "200 rows of 21 numbers are too many" in summary["no_regret_because"]


def test_the_best_model_in_hindsight_is_left_out_on_request(tmp_path):
    (tmp_path / "rows.csv").write_text(words())
    options = ["--target", "y", "--model", "OnlineLogisticRegression", "--json", "--out", tmp_path / "out"]
    done = command("run", tmp_path / "rows.csv", *options, "--no-hindsight")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.output)
    assert summary["regret"] is None and "--no-hindsight" in summary["no_regret_because"]
    assert summary["regret_certificate"] > 0


def test_the_report_tells_how_far_it_is(tmp_path):
    (tmp_path / "rows.csv").write_text(words())
    told = []
    with Folder(tmp_path / "out") as folder:
        run = Run(Settings(str(tmp_path / "rows.csv"), "y"), folder)
        run.play()
        run.finish(csv=False)
        report.write(run, lambda *given: told.append(given))
    steps = [what for what, _, _ in told]
    assert list(dict.fromkeys(steps)) == ["reading the rows again", "best model in hindsight", "drawing"]
    done = [(done, total) for what, done, total in told if what == "best model in hindsight"]
    assert done == sorted(done) and done[-1][0] == done[-1][1] and len(done) == len(run.match.checkpoints)


KILLED = f"""
import os
from regretless.evaluate.run import report
report.write_pictures = lambda *given: os.kill(os.getpid(), {int(signal.SIGKILL)})
from regretless.cli import main
main()
"""


@pytest.mark.slow
def test_killed_in_its_report_a_run_is_resumed(tmp_path):
    (tmp_path / "rows.csv").write_text(words().replace("k", ""))
    options = [str(tmp_path / "rows.csv"), "--target", "y", "--model", "OGD(radius=2)", "--out"]
    killed = subprocess.run([sys.executable, "-c", KILLED, "run", *options, str(tmp_path / "parts")], timeout=600)
    assert killed.returncode == -signal.SIGKILL
    assert command("run", *options, tmp_path / "parts", "--resume").exit_code == 0
    assert command("run", *options, tmp_path / "whole").exit_code == 0
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


def test_dates_are_learned_by_the_calendar(tmp_path):
    """A label that depends on the hour alone, which seconds since 1970 do not tell."""
    minutes = np.random.default_rng(0).integers(0, 60 * 24 * 300, 1500)
    times = np.datetime64("2026-01-01T00:00") + minutes.astype("m8[m]")
    is_open = np.abs(minutes // 60 % 24 - 13.5) < 6
    lines = "".join(f"{when},{'yes' if now else 'no'}\n" for when, now in zip(times, is_open, strict=True))
    (tmp_path / "rows.csv").write_text("when,open\n" + lines)
    for model in ("OnlineLogisticRegression", "AIOLI(radius=20)"):
        options = ["--target", "open", "--model", model, "--json", "--no-hindsight", "--out", tmp_path / model[:5]]
        done = command("run", tmp_path / "rows.csv", *options)
        assert done.exit_code == 0, done.output
        assert json.loads(done.output)["error_rate"] < 0.1
        said = command("predict", tmp_path / model[:5] / "model.npz", tmp_path / "rows.csv")
        assert said.exit_code == 0, said.output

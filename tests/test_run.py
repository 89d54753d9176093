"""`regretless run` and `regretless predict`: once as a process of its own, then by the same entry point in this one."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import regretless
from regretless import AIOLI, OnlineLogisticRegression
from regretless.cli import app
from regretless.evaluate.recipe import learner_of

pytest.importorskip("pyarrow")
PROGRAM = [sys.executable, "-c", "from regretless.cli import main; main()"]


def process(*arguments: str, at: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=600, cwd=at)


def command(*arguments: str, at: Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """The command in this process: starting Python and importing the library takes most of its time."""
    with contextlib.chdir(at):
        done = CliRunner().invoke(app, arguments, input=given, catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def clicks(n: int = 3000, seed: int = 0) -> str:
    """A CSV with numbers, text, dates and gaps."""
    rng = np.random.default_rng(seed)
    lines = ["age,country,when,click"]
    for t in range(n):
        age, country = rng.normal(40, 10), rng.choice(["fr", "de", "us"])
        margin = 0.1 * (age - 40) + {"fr": 1.0, "de": 0.0, "us": -1.0}[country]
        click = "yes" if rng.random() < 1 / (1 + np.exp(-margin)) else "no"
        lines.append(f"{'' if t % 50 == 7 else f'{age:.2f}'},{country},2026-01-{1 + t % 28:02d},{click}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with clicks.csv and a run over it."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "clicks.csv").write_text(clicks())
    result = process("run", "clicks.csv", "--target", "click", at=folder)
    assert result.returncode == 0, result.stderr
    assert "report: clicks-run" in result.stdout
    assert "\x1b" not in result.stdout + result.stderr, "no colours where there is no terminal"
    return folder


def test_a_run_leaves_forecasts_model_summary_pictures_and_a_page(done: Path) -> None:
    import pyarrow.parquet as pq

    out = done / "clicks-run"
    summary = json.loads((out / "summary.json").read_text())
    table = pq.read_table(out / "forecasts.parquet")
    assert table.column_names == ["row", "label", "forecast", "loss", "p_no", "p_yes"]
    assert len(table) == summary["rows"] == 3000
    losses = table["loss"].to_numpy()
    p = np.where(np.array(table["label"].to_pylist()) == "yes", table["p_yes"], table["p_no"])
    np.testing.assert_allclose(losses, -np.log(p), atol=1e-12)
    assert summary["mean_log_loss"] == pytest.approx(losses.mean(), rel=1e-9)
    assert summary["mean_log_loss"] < 0.6
    low, high = summary["regret"]
    assert low <= high <= summary["regret_certificate"] <= summary["regret_bound"]
    assert summary["columns"] == {"age": "number", "country": "category", "when": "time"}
    for name in ("regret.png", "reliability.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
        assert name in (out / "index.html").read_text()
    assert not (out / "unfinished").exists()
    assert len((out / "trace.csv").read_text().splitlines()) > 20


def test_a_run_is_the_library_s_own_game(done: Path) -> None:
    import pyarrow.parquet as pq

    from regretless.streams import read

    learner = OnlineLogisticRegression()
    blocks = read(done / "clicks.csv", "click")
    p = np.concatenate([learner.predict_then_learn(block.X, block.y) for block in blocks])
    table = pq.read_table(done / "clicks-run" / "forecasts.parquet")
    np.testing.assert_array_equal(table["p_yes"].to_numpy(), p[:, 1])
    model = regretless.load(done / "clicks-run" / "model.npz")
    assert model.total_loss_ == learner.total_loss_


def test_predict_says_what_the_model_says(done: Path) -> None:
    rows = clicks(50, seed=1)
    without = "\n".join(line.rsplit(",", 1)[0] for line in rows.splitlines())
    (done / "tomorrow.csv").write_text(without)
    result = command("predict", "clicks-run/model.npz", "tomorrow.csv", at=done)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 51
    assert lines[0] == '"row","forecast","p_no","p_yes"'
    piped = command("predict", "clicks-run/model.npz", "-", "--out", "p.parquet", at=done, given=rows)
    assert piped.returncode == 0, piped.stderr
    import pyarrow.parquet as pq

    again = pq.read_table(done / "p.parquet")
    assert [float(line.split(",")[-1]) for line in lines[1:]] == pytest.approx(again["p_yes"].to_pylist(), rel=1e-12)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def checkpoint(folder: Path) -> int:
    """The number of the last one; 0 is that before the first row."""
    path = folder / "unfinished" / "run.json"
    return int(json.loads(path.read_text())["number"]) if path.exists() else -1


OPTIONS = ["--target", "click", "--on-bad", "quarantine", "--checkpoint-every", "4096"]


@pytest.mark.services
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=str)
def test_killed_and_resumed_is_one_run(tmp_path: Path, how: signal.Signals) -> None:
    """Stopped while the rows come through a pipe, then given them again: the same files, byte for byte."""
    text = clicks(14_000)
    lines = text.splitlines(keepends=True)
    lines[6000] = "1,2,oops\n"
    lines[9000] = "12,fr,2026-01-01,\n"
    text = "".join(lines)
    whole = command("run", "-", *OPTIONS, "--out", "whole", at=tmp_path, given=text)
    assert whole.returncode == 0, whole.stderr

    process = subprocess.Popen(
        [*PROGRAM, "run", "-", *OPTIONS, "--out", "parts"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write("".join(lines[:9500]))
    process.stdin.flush()
    until = time.time() + 300
    while checkpoint(tmp_path / "parts") < 1 and time.time() < until:
        time.sleep(0.1)
    process.send_signal(how)
    if how == signal.SIGINT:  # heard when the block is whole
        process.stdin.write("".join(lines[9500:]))
    try:
        process.stdin.close()
    except BrokenPipeError:
        pass
    process.wait(300)
    assert process.returncode == (4 if how == signal.SIGINT else -signal.SIGKILL)
    assert (tmp_path / "parts" / "unfinished").exists()

    resumed = command("run", "-", *OPTIONS, "--out", "parts", "--resume", at=tmp_path, given=text)
    assert resumed.returncode == 0, resumed.stderr
    assert files(tmp_path / "parts") == files(tmp_path / "whole")
    bad = [json.loads(line) for line in (tmp_path / "parts" / "quarantine.jsonl").read_text().splitlines()]
    assert [each["line"] for each in bad] == [6001, 9001]


def test_a_broken_file_is_a_data_error_that_names_line_column_and_value(done: Path) -> None:
    (done / "broken.csv").write_text(clicks(100) + "abc,fr,2026-01-01,yes\n")
    result = command("run", "broken.csv", "--target", "click", at=done)
    assert result.returncode == 3
    for word in ("broken.csv", "line 102", "'age'", "'abc'"):
        assert word in result.stderr
    assert "Traceback" not in result.stderr
    missing = command("run", "clicks.csv", "--target", "clicks", "--out", "other", at=done)
    assert missing.returncode == 3
    assert "Did you mean 'click'" in missing.stderr


def test_bad_lines_are_counted_once(done: Path) -> None:
    """Though the file is read a second time, for the best in hindsight."""
    lines = clicks(100).splitlines(keepends=True)
    (done / "some.csv").write_text("".join([*lines[:50], "1,2\n", *lines[50:]]))
    result = command("run", "some.csv", "--target", "click", "--on-bad", "quarantine", "--json", at=done)
    summary = json.loads(result.stdout)
    assert (summary["rows"], summary["bad_rows"]) == (100, 1)
    assert summary["regret"] is not None
    assert len((done / "some-run" / "quarantine.jsonl").read_text().splitlines()) == 1


def test_json_is_all_that_is_printed(done: Path) -> None:
    result = command(
        "run", "-", "--target", "click", "--json", "--forecasts", "csv", "--out", "j", at=done, given=clicks(200)
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["rows"] == 200
    assert (done / "j" / "forecasts.csv").read_text().count("\n") == 201


def test_other_learners_numbers_and_model_files(done: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    numbers = "a,b,y\n" + "".join(f"{a},{b},{a - b}\n" for a, b in X)
    (done / "numbers.csv").write_text(numbers)
    result = command(
        "run", "numbers.csv", "--target", "y", "--model", "VovkAzouryWarmuth(regularization=0.1)", "--json", at=done
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["mean_squared_error"] < 0.2
    rows = "".join(f"{int(a > b)} 1:{a} 2:{b}\n" for a, b in X)
    (done / "rows.svm").write_text(rows)
    first = command("run", "rows.svm", "--model", "aioli(radius=3)", "--json", at=done)
    assert first.returncode == 0, first.stderr
    np.testing.assert_allclose(
        json.loads(first.stdout)["total_loss"], AIOLI(radius=3).fit(X, (X[:, 0] > X[:, 1]).astype(int)).total_loss_
    )
    on = command("run", "rows.svm", "--model", "rows-run/model.npz", "--out", "on", "--json", at=done)
    assert on.returncode == 0, on.stderr
    second = json.loads(on.stdout)
    assert second["mean_log_loss"] < json.loads(first.stdout)["mean_log_loss"]
    assert second["total_loss"] == pytest.approx(300 * second["mean_log_loss"])  # of these rows alone
    words = command("run", "clicks.csv", "--target", "click", "--model", "AIOLI", "--out", "other", at=done)
    assert words.returncode == 3
    assert "'country' has categories" in words.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nowhere.csv"], "no such file"),
        (["clicks.csv", "--on-bad", "shrug"], "shrug"),
        (["clicks.csv", "--target", "click", "--out", "fresh", "--model", "Titanic()"], "unknown learner"),
        (["clicks.csv", "--target", "click", "--out", "fresh", "--model", "no.npz"], "no such model file: 'no.npz'"),
        (["clicks.csv", "--target", "click", "--out", "fresh", "--drop", "age", "--number", "age"], "declared twice"),
        (["clicks.csv", "--target", "click", "--out", "fresh", "--resume"], "cannot resume"),
    ],
)
def test_what_is_refused(done: Path, arguments: list[str], word: str) -> None:
    result = command("run", *arguments, at=done)
    assert result.returncode in (2, 3)
    assert word in result.stderr
    assert "Traceback" not in result.stderr
    assert not (done / "fresh").exists()  # a run that fails leaves nothing


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("__import__('os').system('true')", "neither a number"),
        ("AIOLI(radius=open('x'))", "unknown learner 'open'"),
        ("AIOLI(radiuss=3)", "radiuss"),
        ("AIOLI(", "not a learner"),
        ("AIOL", "Did you mean AIOLI"),
        ("[AIOLI()]", "not a learner"),
        ("bounds", "unknown learner"),
    ],
)
def test_learners_as_text_are_read_and_never_run(text: str, word: str) -> None:
    with pytest.raises(ValueError, match=word.replace("(", r"\(")):
        learner_of(text)


def test_a_bad_row_of_the_learner_is_set_aside_alone(tmp_path: Path) -> None:
    """A number the reader takes and the learner does not."""
    text = "".join(f"{t % 2} 1:{1e200 if t == 70 else t % 7} 2:1\n" for t in range(200))
    (tmp_path / "rows.svm").write_text(text)
    result = command("run", "rows.svm", "--model", "AIOLI", "--on-bad", "quarantine", "--json", at=tmp_path)
    assert result.returncode == 0, result.stderr
    summary: dict[str, Any] = json.loads(result.stdout)
    assert (summary["rows"], summary["bad_rows"]) == (199, 1)
    assert json.loads((tmp_path / "rows-run" / "quarantine.jsonl").read_text())["line"] == 71

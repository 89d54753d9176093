"""Runs into a folder that holds a run, and runs that fail."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer.testing")

from commands import command, draw_nothing, table
from regretless.evaluate.run import report

OPTIONS = ["--target", "y", "--model", "OGD(radius=2)", "--no-hindsight"]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def stop(*arguments: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def undrawn(monkeypatch):
    draw_nothing(monkeypatch)


@pytest.fixture
def data(tmp_path) -> Path:
    (tmp_path / "rows.csv").write_text(table(100))
    return tmp_path / "rows.csv"


@pytest.mark.usefixtures("undrawn")
def test_a_finished_run_is_replaced_only_on_request(data, monkeypatch):
    out = data.parent / "out"
    monkeypatch.setattr("sys.argv", ["regretless", "run", str(data), "--out", str(out)])
    assert command("run", data, *OPTIONS, "--out", out, "--on-bad", "quarantine").exit_code == 0
    before = files(out)
    refused = command("run", data, *OPTIONS, "--out", out)
    assert refused.exit_code == 2
    assert "holds a finished run" in refused.output
    for choice in ("--overwrite", f"--out {out}-2"):
        assert f"regretless run {data} --out {out} {choice}\n" in refused.output
    assert files(out) == before
    again = command("run", data, *OPTIONS, "--out", out, "--overwrite", "--forecasts", "csv")
    assert again.exit_code == 0, again.output
    assert {*before} - {*files(out)} == {"forecasts.parquet", "quarantine.jsonl"}  # nothing stale is left
    assert "forecasts.csv" in files(out)


@pytest.mark.usefixtures("undrawn")
def test_a_checkpoint_is_not_discarded_silently(data, monkeypatch):
    out = data.parent / "out"
    monkeypatch.setattr("sys.argv", ["regretless", "run", str(data)])
    with monkeypatch.context() as patch:
        patch.setattr(report, "write", stop)
        assert command("run", data, *OPTIONS, "--out", out).exit_code == 4
    before = files(out)
    refused = command("run", data, *OPTIONS, "--out", out)
    assert refused.exit_code == 2 and "holds an interrupted run" in refused.output
    for choice in ("--resume", "--overwrite"):
        assert f"regretless run {data} {choice}\n" in refused.output
    wrong = command("run", data, *OPTIONS, "--out", out, "--overwrite", "--drop", "b", "--number", "b")
    assert wrong.exit_code == 2 and files(out) == before  # refused before anything is removed
    wrong = command("run", data, *OPTIONS, "--out", out, "--overwrite", "--decimal", ",", "--format", "jsonl")
    assert wrong.exit_code == 3 and "--decimal ,: choose" in wrong.output
    assert command("run", data, *OPTIONS, "--out", out, "--overwrite").exit_code == 0


def test_a_run_that_fails_leaves_no_folder(data):
    (data.parent / "bad.csv").write_text(table(100) + "1,2\n")
    for options in (["--target", "nothing"], ["--target", "y"]):
        failed = command("run", data.parent / "bad.csv", *options, "--model", "OGD", "--out", data.parent / "new")
        assert failed.exit_code == 3
        assert not (data.parent / "new").exists()
    mine = data.parent / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    assert command("run", data.parent / "bad.csv", "--target", "y", "--model", "OGD", "--out", mine).exit_code == 3
    assert files(mine) == {"notes.txt": b"mine"}

"""`regretless run` where something is in the way: another run, a changed file, links, hostile text, bombs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer.testing")

from commands import command, draw_nothing, table
from regretless.cli.terminal import printable, printable_json
from regretless.evaluate.run import report
from regretless.evaluate.run.folder import Folder
from regretless.evaluate.run.lock import NAME, Lock
from regretless.evaluate.run.run import Run

OPTIONS = ["--target", "y", "--model", "OGD(radius=2)"]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def undrawn(monkeypatch):
    draw_nothing(monkeypatch)


def stop(*arguments: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_stopped_in_its_report_and_at_its_end_a_run_goes_on(tmp_path, monkeypatch):
    data, whole, parts = tmp_path / "rows.csv", tmp_path / "whole", tmp_path / "parts"
    data.write_text(table(200))
    assert command("run", data, *OPTIONS, "--out", whole).exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(report, "write_pictures", stop)
        stopped = command("run", data, *OPTIONS, "--out", parts)
        assert stopped.exit_code == 4, stopped.output
        assert "To continue: regretless" in stopped.output
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "clear", stop)
        assert command("run", data, *OPTIONS, "--out", parts, "--resume").exit_code == 4
    resumed = command("run", data, *OPTIONS, "--out", parts, "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert files(parts) == files(whole)
    again = command("run", data, *OPTIONS, "--out", parts, "--resume")  # as one killed after its last file would do
    assert again.exit_code == 0
    assert again.output == resumed.output
    other = command("run", data, "--target", "b", "--out", parts, "--resume")
    assert other.exit_code == 3
    assert "nothing to resume" in other.output


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_a_file_that_has_changed_anywhere_is_not_gone_on_with(tmp_path, monkeypatch, kind):
    """Beyond its beginning, at the same size."""
    text = table(5000)
    data = tmp_path / f"rows.{kind}"

    def write(text: str) -> None:
        if kind == "parquet":
            import pyarrow.parquet as pq
            from pyarrow import csv as pacsv

            pq.write_table(
                pacsv.read_csv(gzip.io.BytesIO(text.encode())), data, compression="none", use_dictionary=False
            )
        else:
            data.write_bytes(gzip.compress(text.encode(), 0, mtime=0) if kind.endswith("gz") else text.encode())

    write(text)
    size = data.stat().st_size
    with monkeypatch.context() as patch:
        patch.setattr(report, "write", stop)
        assert command("run", data, *OPTIONS, "--out", tmp_path / "out").exit_code == 4
    at = len(text) - 3000 + text[-3000:].index("\n-") + 1
    write(text[:at] + "+" + text[at + 1 :])
    assert data.stat().st_size == size
    changed = command("run", data, *OPTIONS, "--out", tmp_path / "out", "--resume")
    assert changed.exit_code == 3
    assert "has changed" in changed.output
    write(text)
    assert command("run", data, *OPTIONS, "--out", tmp_path / "out", "--resume").exit_code == 0


def test_one_run_at_a_time_writes_to_a_folder(tmp_path):
    (tmp_path / "rows.csv").write_text(table(200))
    lock = Lock(tmp_path / NAME)
    lock.take()
    refused = command("run", tmp_path / "rows.csv", *OPTIONS, "--out", tmp_path)
    assert refused.exit_code == 3
    assert "another run" in refused.output and "--out" in refused.output
    lock.release()
    assert not (tmp_path / "run.lock").exists()
    (tmp_path / "run.lock").write_text("12345\n")  # of a run that was killed
    lock.take()
    lock.release()


@pytest.mark.usefixtures("undrawn")
def test_no_file_is_written_through_a_link(tmp_path):
    (tmp_path / "rows.csv").write_text(table(200))
    names = [
        "summary.json",
        "forecasts.parquet",
        "model.npz",
        "trace.csv",
        "index.html",
        "regret.png",
        "quarantine.jsonl",
    ]
    out, victim = tmp_path / "out", tmp_path / "victim"
    victim.write_text("mine")
    out.mkdir()
    for name in names:
        (out / name).symlink_to(victim)
    done = command("run", tmp_path / "rows.csv", *OPTIONS, "--out", out, "--on-bad", "quarantine", "--overwrite")
    assert done.exit_code == 0, done.output
    assert victim.read_text() == "mine"
    assert not any((out / name).is_symlink() for name in names)
    (tmp_path / "p.csv").symlink_to(victim)
    done = command("predict", out / "model.npz", tmp_path / "rows.csv", "--out", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output
    assert victim.read_text() == "mine"
    (out / "unfinished").symlink_to(tmp_path)
    assert command("run", tmp_path / "rows.csv", *OPTIONS, "--out", out, "--overwrite").exit_code == 3
    (out / "unfinished").unlink()
    (out / "run.lock").symlink_to(victim)
    assert command("run", tmp_path / "rows.csv", *OPTIONS, "--out", out, "--overwrite").exit_code == 3
    assert victim.read_text() == "mine"


BAD_JSON = [
    '{"a": ' + "9" * 5000 + ', "y": "u"}',
    '{"a": ' + "[" * 5000 + ', "y": "u"}',
    '{"a": 1, "y": "\\ud800"}',
    '{"a": Infinity, "y": "u"}',
    '{"a": 1, "a": 2, "y": "u"}',
    '{"a": 1, "y": "u\\u0000"}',
    '{"a": 1, "new": 3, "y": "u"}',
    '{"a": 1\x00, "y": "u"}',
    '\ufeff{"a": 1, "y": "u"}',
    "[1]",
    "1",
    '{"a": 1, "y": "u"}\r{"a": 1, "y": "u"}',
]


@pytest.mark.slow
def test_text_of_others_is_shown_and_not_obeyed(tmp_path):
    """And each bad line of JSON is a bad line."""
    labels = ["=cmd()", "[red]x", "\x1b[31mz\u202e"]
    lines = [json.dumps({"a": t % 5, "y": labels[t % 3]}) for t in range(4100)]
    data = tmp_path / "rows.jsonl"
    data.write_text("\n".join([*lines, *BAD_JSON, lines[0]]) + "\n", encoding="utf-8")
    out = tmp_path / "out"
    options = ["--model", "OGD", "--on-bad", "quarantine", "--forecasts", "csv", "--escape-formulas", "--target", "y"]
    done = command("run", data, *options, "--out", out)
    assert done.exit_code == 0, done.output
    assert "\\x1b[31mz\\u202e, =cmd(), [red]x" in done.output
    assert "\x1b" not in done.output and "\u202e" not in done.output
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert (summary["rows"], summary["bad_rows"]) == (4101, len(BAD_JSON))
    assert len((out / "quarantine.jsonl").read_text(encoding="utf-8").splitlines()) == len(BAD_JSON)
    written = (out / "forecasts.csv").read_text(encoding="utf-8")
    assert '"\'=cmd()"' in written and ',"=cmd()"' not in written
    said = command("predict", out / "model.npz", data)
    assert said.exit_code == 3  # a column that is no longer a number stops it
    said = command("predict", out / "model.npz", data, "--on-bad", "skip")
    assert said.exit_code == 0 and said.output.count("\n") > 4100
    assert printable_json('"\x9b\U000e0001é"\n') == '"\\u009b\\udb40\\udc01é"\n'
    assert printable("a\tb\nc", keep="\n") == "a\\tb\nc"


VW = [
    "1 |f a:1 b",
    "-1 |f c |g:2 d:0.5",
    "1 2.0 'tag |f a",
    "-1 0.5 tag|f c:-1",
    "1 |",
    "-1 |f \u00fcber:1 \u4e2d",
    "",
    "1 | a b c",
]


@pytest.mark.parametrize(
    ("lines", "options", "classes"),
    [
        (VW, [], [-1, 1]),
        ([line for line in VW if ".0" not in line and ".5" not in line], ["--bits", "6"], [-1, 1]),
        ([f"{t % 3 + 1} |f x{t % 3}" for t in range(30)], [], [1, 2, 3]),
        (["1 |f a"] * 5, ["--bits", "6"], [1]),
        (["1 |f a", "-1 |f b", "|f no-label", "|", "x |f a", "1 |f a:1e999", "# 1 |f a", "-1 |f b"], [], [-1, 1]),
    ],
    ids=["weights", "narrow", "three-classes", "one-class", "bad-lines"],
)
@pytest.mark.usefixtures("undrawn")
def test_vw_text_runs_with_the_default_learner(tmp_path, lines, options, classes):
    data = tmp_path / "rows.vw.gz"
    data.write_bytes(gzip.compress("\n".join(lines).encode()))
    done = command("run", data, "--on-bad", "skip", "--json", "--out", tmp_path / "out", *options)
    assert done.exit_code == 0, done.output
    summary = json.loads(done.output)
    assert summary["classes"] == classes
    assert summary["learner"].startswith("OnlineLogisticRegression")
    said = command("predict", tmp_path / "out" / "model.npz", data)  # with the same bits
    assert said.exit_code == (3 if summary["bad_rows"] else 0), said.output


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_wide_svmlight_text_needs_its_columns_and_can_be_resumed(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    far = 1 << 24
    lines = [f"{t % 3} " + " ".join(f"{j}:1" for j in np.unique(rng.integers(1, far, 5))) for t in range(8190)]
    data = tmp_path / "rows.svm"
    data.write_text("\n".join([*lines, f"0 3:1 {far}:2"]))
    few = command("run", data, "--out", tmp_path / "few")
    assert few.exit_code == 3
    assert f"it has index {far}, but the first rows end at" in few.output and "columns" in few.output
    options = ["--columns", far, "--checkpoint-every", 4096]
    whole = command("run", data, *options, "--out", tmp_path / "whole")
    assert whole.exit_code == 0, whole.output
    with monkeypatch.context() as patch:
        learn = Run._learn
        patch.setattr(Run, "_learn", lambda *given: stop() if given[-1] else learn(*given))
        assert command("run", data, *options, "--out", tmp_path / "parts").exit_code == 4
    assert command("run", data, *options, "--out", tmp_path / "parts", "--resume").exit_code == 0
    assert files(tmp_path / "parts") == files(tmp_path / "whole")
    assert json.loads((tmp_path / "whole" / "summary.json").read_text())["features"] == far
    assert "columns seen: 40," in (tmp_path / "whole" / "index.html").read_text()
    said = command("predict", tmp_path / "whole" / "model.npz", data)
    assert said.exit_code == 0 and said.output.count("\n") == 1 + 8191


def test_vw_text_without_a_label_or_with_too_many_columns_is_a_data_error(tmp_path):
    (tmp_path / "none.vw").write_text("|f a\n|f b\n")
    none = command("run", tmp_path / "none.vw", "--on-bad", "skip", "--out", tmp_path / "out")
    assert none.exit_code == 3
    assert "no row to learn from (2 bad rows)" in none.output
    (tmp_path / "rows.vw").write_text("\n".join(VW))
    large = command("run", tmp_path / "rows.vw", "--model", "AIOLI", "--out", tmp_path / "out")
    assert large.exit_code == 3
    assert "512" in large.output and "--bits" in large.output and "LinearizedFTRL" in large.output


def test_one_class_has_a_report_that_says_what_is_not_known(tmp_path, monkeypatch):
    data, out = tmp_path / "rows.csv", tmp_path / "out"
    data.write_text("a,y\n" + "1,x\n2,x\n" * 20)
    with monkeypatch.context() as patch:
        patch.setattr(report, "write_pictures", stop)
        assert command("run", data, "--target", "y", "--out", out).exit_code == 4
    done = command("run", data, "--target", "y", "--out", out, "--resume")
    assert done.exit_code == 0, done.output
    assert "all rows have the same label" in done.output
    assert json.loads((out / "summary.json").read_text())["regret"] is None


def test_a_damaged_checkpoint_is_a_data_error(tmp_path, monkeypatch):
    data, out = tmp_path / "rows.csv", tmp_path / "out"
    data.write_text(table(200))
    with monkeypatch.context() as patch:
        patch.setattr(report, "write", stop)
        assert command("run", data, *OPTIONS, "--out", out).exit_code == 4
    for text in ("{", "{}", '{"settings": {}, "number": 1}', "[1]", "[" * 100_000):
        (out / "unfinished" / "run.json").write_text(text)
        refused = command("run", data, *OPTIONS, "--out", out, "--resume")
        assert refused.exit_code == 3, refused.exception
        assert "start again" in refused.output

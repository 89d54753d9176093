"""Columns of `regretless run` and `regretless predict`: options, identifiers, lines, bad rows, messages."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("typer.testing")

import pyarrow.parquet as pq  # noqa: E402
from pyarrow import csv as pacsv  # noqa: E402

from commands import command, draw_nothing  # noqa: E402


def orders(n: int = 60) -> str:
    """Semicolons, decimal commas, Latin-1, digits that are codes, identifiers, and a bad line after the first ten."""
    rng = np.random.default_rng(0)
    lines = ["order;stra\u00dfe;code;price;note;paid"]
    for t, (code, price) in enumerate(zip(rng.integers(3, size=n), rng.normal(50, 10, size=n), strict=True)):
        shown = f"{price:.2f}".replace(".", ",")
        lines.append(f"A-{t};Caf\u00e9 {t % 2};{code};{shown};n{t};{'ja' if price > 50 + code else 'nein'}")
    lines.insert(11, "A-x;;;zehn;;ja")
    return "\n".join(lines) + "\n"


OPTIONS = ["--category", "code", "--drop", "note", "--id", "order", "--encoding", "latin-1", "--on-bad", "skip"]


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("columns")
    (folder / "orders.csv").write_bytes(orders().encode("latin-1"))
    out = ["--out", folder / "out", "--target", "paid", "--no-hindsight"]
    ran = command("run", folder / "orders.csv", *out, *OPTIONS)
    assert ran.exit_code == 0, ran.output
    return folder


def test_options_choose_and_declare_columns(done):
    summary = json.loads((done / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["columns"] == {"stra\u00dfe": "category", "code": "category", "price": "comma"}
    assert summary["bad_rows"] == 1 and summary["encoding"] == "latin-1"


def test_forecasts_have_identifiers_and_lines(done):
    table = pq.read_table(done / "out" / "forecasts.parquet")
    assert table.column_names[:3] == ["row", "order", "label"]
    lines = orders().splitlines()
    for row, order, label in zip(*(table[name].to_pylist() for name in ("row", "order", "label")), strict=True):
        assert lines[row - 1].split(";")[0] == order and lines[row - 1].endswith(f";{label}")


def test_predict_skips_or_keeps_bad_rows(done):
    """And reads the file as in training."""
    model, data = done / "out" / "model.npz", done / "orders.csv"
    stopped = command("predict", model, data)
    assert stopped.exit_code == 3
    assert "line 12: column 'price' has 'zehn'" in stopped.output and "--on-bad skip" in stopped.output
    skipped = command("predict", model, data, "--on-bad", "skip", "--id", "order")
    assert skipped.exit_code == 0, skipped.output
    assert "1 bad rows were skipped" in skipped.stderr
    said = pacsv.read_csv(io.BytesIO(skipped.stdout.encode()))
    assert said.column_names == ["row", "order", "forecast", "p_ja", "p_nein"]
    assert said["row"].to_pylist() == [*range(2, 12), *range(13, 63)] and said["order"].to_pylist()[10] == "A-10"
    kept = command("predict", model, data, "--on-bad", "quarantine", "--out", done / "p.csv")
    assert kept.exit_code == 0, kept.output
    bad = [json.loads(line) for line in (done / "p-bad.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [each["line"] for each in bad] == [12]
    nowhere = command("predict", model, data, "--on-bad", "quarantine")
    assert nowhere.exit_code == 2 and "needs --out" in nowhere.output


def test_a_row_that_the_learner_refuses_is_named_by_its_line(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,y\n" + "".join(f"{t % 7},1,{t % 2}\n" for t in range(30)) + "1e200,1,0\n")
    options = ["--target", "y", "--model", "AIOLI", "--no-hindsight", "--out", tmp_path / "out"]
    stopped = command("run", tmp_path / "rows.csv", *options)
    assert stopped.exit_code == 3 and "rows.csv, line 32: " in stopped.output
    assert command("run", tmp_path / "rows.csv", *options, "--on-bad", "skip").exit_code == 0
    (tmp_path / "new.csv").write_text("a,b\n1,1\n,1\n2,1\n")
    stopped = command("predict", tmp_path / "out" / "model.npz", tmp_path / "new.csv")
    assert stopped.exit_code == 3 and "new.csv, line 3: " in stopped.output
    said = command("predict", tmp_path / "out" / "model.npz", tmp_path / "new.csv", "--on-bad", "skip")
    assert said.exit_code == 0 and [line.split(",")[0] for line in said.stdout.splitlines()[1:]] == ["2", "4"]


@pytest.fixture
def undrawn(monkeypatch):
    draw_nothing(monkeypatch)


@pytest.mark.usefixtures("undrawn")
def test_the_default_learner_is_that_of_python(tmp_path):
    """Whether or not it is named."""
    (tmp_path / "rows.csv").write_text("a,y\n" + "1,x\n,z\n2,x\n" * 20)
    seen = []
    for model in ([], ["--model", "OnlineLogisticRegression"]):
        options = ["--target", "y", "--json", "--no-hindsight", "--out", tmp_path / f"out-{len(seen)}", *model]
        done = command("run", tmp_path / "rows.csv", *options)
        assert done.exit_code == 0, done.output
        seen.append(json.loads(done.output))
    assert seen[0] == seen[1] and seen[0]["learner"] == "OnlineLogisticRegression()"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "a.csv",
            "a,y\n" + "1,0\n2,1\n" * 10 + "x,0\n",
            ["line 22: column 'a' has 'x'", "--category 'a'", "--on-bad skip"],
        ),
        ("a.jsonl", '{"a": {"b": 1}, "y": 0}\n' * 5, ["column 'a' is an object", "--drop 'a'"]),
        ("a.txt", "a,y\n1,2\n", ["pass --format,"]),
        ("a.csv", "a,y\nCaf\u00e9,2\n", ["not UTF-8", "--encoding latin-1"]),
        ("a.vw", "1 |f a\n", ["remove --drop"]),
    ],
    ids=["number", "nested", "format", "encoding", "no-columns"],
)
def test_messages_name_options_of_the_command(tmp_path, name, text, words):
    (tmp_path / name).write_text(text, encoding="latin-1")
    drop = ["--drop", "b"] if name == "a.vw" else []
    refused = command("run", tmp_path / name, "--target", "y", "--out", tmp_path / "out", *drop)
    assert refused.exit_code == 3
    for word in words:
        assert word in refused.output
    assert 'on_bad="' not in refused.output and "declare=" not in refused.output


@pytest.mark.slow
def test_a_reader_that_has_read_enough_is_no_error(done):
    program = "from regretless.cli import main; main()"
    lines = "price;stra\u00dfe;code\n" + "1,5;x;1\n" * 20_000
    (done / "long.csv").write_bytes(lines.encode("latin-1"))
    process = subprocess.Popen(
        [sys.executable, "-c", program, "predict", str(done / "out" / "model.npz"), str(done / "long.csv")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith('"row"')
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(300) == 0


@pytest.mark.usefixtures("undrawn")
def test_columns_that_look_like_identifiers_are_named(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{t},{t * t},A{t},w{t % 5},{x:.3f},{int(x > 0)}\n" for t, x in enumerate(rng.normal(size=80))]
    (tmp_path / "rows.csv").write_text("n,square,order,word,x,y\n" + "".join(lines))
    options = ["--target", "y", "--no-hindsight"]
    hinted = command("run", tmp_path / "rows.csv", *options, "--out", tmp_path / "a")
    assert hinted.exit_code == 0, hinted.output
    assert "n, order: if so, leave them out with --drop" in hinted.output
    assert json.loads((tmp_path / "a" / "summary.json").read_text())["identifiers"] == ["n", "order"]
    quiet = command("run", tmp_path / "rows.csv", *options, "--out", tmp_path / "b", "--id", "order", "--drop", "n")
    assert "identifiers" not in quiet.output


@pytest.mark.usefixtures("undrawn")
def test_the_report_names_columns_with_pooled_categories(tmp_path):
    lines = [f"{'abcdef'[t % 6]},w{t % 2},{t % 2}\n" for t in range(60)]
    (tmp_path / "rows.csv").write_text("letter,word,y\n" + "".join(lines))
    model = ["--model", "OnlineLogisticRegression(max_categories=2)", "--no-hindsight", "--out", tmp_path / "out"]
    assert command("run", tmp_path / "rows.csv", "--target", "y", *model).exit_code == 0
    assert "(by column: letter 4)" in (tmp_path / "out" / "index.html").read_text()

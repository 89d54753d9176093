"""The report of `regretless run`: what it says, and what it takes to make it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("typer.testing")

import pyarrow.parquet as pq  # noqa: E402
from sklearn import metrics  # noqa: E402

from commands import command, draw_nothing  # noqa: E402
from regretless.evaluate.run import hindsight, report  # noqa: E402
from regretless.evaluate.run.decision import costs_of, decision_of  # noqa: E402
from regretless.evaluate.run.folder import Folder  # noqa: E402
from regretless.evaluate.run.run import Run, Settings  # noqa: E402
from regretless.evaluate.run.scores import BINS, scores_of  # noqa: E402
from regretless.evaluate.run.wording import difference  # noqa: E402


def words(n: int = 200, kinds: int = 20) -> str:
    """One column of text, which is encoded as many columns."""
    rng = np.random.default_rng(0)
    lines = [f"k{k},{'no' if k % 3 == e else 'yes'}\n" for k, e in rng.integers((kinds, 3), size=(n, 2))]
    return "word,y\n" + "".join(lines)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def undrawn(monkeypatch):
    draw_nothing(monkeypatch)


@pytest.mark.usefixtures("undrawn")
def test_the_limit_for_comparators_counts_encoded_columns(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text(words())
    monkeypatch.setattr(hindsight, "END", 200 * 10)  # between one column and its twenty categories
    done = command("run", tmp_path / "rows.csv", "--target", "y", "--json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.output)
    assert summary["regret"] is None and "200 rows of 21 numbers are too many" in summary["no_regret_because"]


@pytest.mark.usefixtures("undrawn")
def test_the_best_model_in_hindsight_is_left_out_on_request(tmp_path):
    (tmp_path / "rows.csv").write_text(words())
    options = ["--target", "y", "--model", "OnlineLogisticRegression", "--json", "--out", tmp_path / "out"]
    done = command("run", tmp_path / "rows.csv", *options, "--no-hindsight")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.output)
    assert summary["regret"] is None and "--no-hindsight" in summary["no_regret_because"]
    assert summary["regret_certificate"] > 0


@pytest.mark.usefixtures("undrawn")
def test_the_report_tells_how_far_it_is(tmp_path):
    (tmp_path / "rows.csv").write_text(words())
    told = []
    with Folder(tmp_path / "out") as folder:
        run = Run(Settings(str(tmp_path / "rows.csv"), "y"), folder)
        run.play()
        run.finish(csv=False)
        report.write(run, lambda *given: told.append(given))
    steps = [what for what, _, _ in told]
    assert list(dict.fromkeys(steps)) == ["reading the rows again", "best model in hindsight", "scores", "drawing"]
    done = [(done, total) for what, done, total in told if what == "best model in hindsight"]
    assert done == sorted(done) and done[-1][0] == done[-1][1] and len(done) == len(run.match.checkpoints)


KILLED = f"""
import os
from regretless.evaluate.run import report
report.write_pictures = lambda *given: os.kill(os.getpid(), {int(signal.SIGKILL)})
from regretless.cli import main
main()
"""


@pytest.mark.services
def test_killed_in_its_report_a_run_is_resumed(tmp_path):
    (tmp_path / "rows.csv").write_text(words().replace("k", ""))
    options = [str(tmp_path / "rows.csv"), "--target", "y", "--model", "OGD(radius=2)", "--out"]
    killed = subprocess.run([sys.executable, "-c", KILLED, "run", *options, str(tmp_path / "parts")], timeout=600)
    assert killed.returncode == -signal.SIGKILL
    assert command("run", *options, tmp_path / "parts", "--resume").exit_code == 0
    assert command("run", *options, tmp_path / "whole").exit_code == 0
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


@pytest.mark.usefixtures("undrawn")
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
    (tmp_path / "alone.npz").write_bytes((tmp_path / "Onlin" / "model.npz").read_bytes())  # without its summary
    assert command("predict", tmp_path / "alone.npz", tmp_path / "rows.csv").exit_code == 0


def forecasts(n: int, labels: list[str], seed: int = 0):
    """A match that has only what scores need, and a table of random forecasts in two parts."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(len(labels)), size=n)
    y = np.array([rng.choice(len(labels), p=row) for row in p])
    columns = {"label": np.array(labels)[y].tolist(), "loss": -np.log(p[np.arange(n), y])}
    table = pa.table(columns | {f"p_{label}": p[:, k] for k, label in enumerate(labels)})
    match = SimpleNamespace(kind="probabilities", rows=n, learner=SimpleNamespace(classes_=np.array(labels)))
    return match, iter([table.slice(0, n // 3), table.slice(n // 3)]), y, p


@pytest.mark.parametrize("labels", [["no", "yes"], ["a", "b", "c"]], ids=["two", "three"])
def test_scores_are_those_of_scikit_learn(labels):
    match, tables, y, p = forecasts(500, labels)
    decision = decision_of(labels, None, (1.0, 4.0)) if len(labels) == 2 else None
    found = scores_of(tables, match, decision).found
    shares = np.bincount(y) / y.size
    constant = np.tile(shares, (y.size, 1))
    assert found["baseline"]["mean_log_loss"] == pytest.approx(metrics.log_loss(y, constant))
    assert found["baseline"]["error_rate"] == pytest.approx(np.mean(y != shares.argmax()))
    assert found["baseline"]["brier_score"] == pytest.approx(((constant - np.eye(len(labels))[y]) ** 2).sum() / y.size)
    if decision is None:
        said = p.argmax(axis=1)
        assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, p, multi_class="ovr"))
    else:
        said = (p[:, 1] >= 0.2).astype(int)
        assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, p[:, 1]))
        cost = 1.0 * ((said == 1) & (y == 0)).sum() + 4.0 * ((said == 0) & (y == 1)).sum()
        assert found["cost"]["total"] == cost and found["threshold"] == 0.2 and found["positive"] == "yes"
        assert found["baseline_cost_per_row"] == pytest.approx(min((y == 0).mean(), 4.0 * (y == 1).mean()))
    by_hand = metrics.precision_recall_fscore_support(y, said)
    for k, each in enumerate(found["per_class"]):
        assert [each[name] for name in ("precision", "recall", "f1")] == pytest.approx([row[k] for row in by_hand[:3]])


def test_scores_over_time_and_reliability_are_sums_over_windows_and_bins():
    match, tables, y, p = forecasts(307, ["no", "yes"])
    scores = scores_of(tables, match, None)
    ends = scores.over_time.ends.astype(int)
    assert ends[-1] == 307 and len(ends) == 6
    loss, wrong = -np.log(p[np.arange(307), y]), p.argmax(axis=1) != y
    for first, end, mean, error in zip([0, *ends], ends, scores.over_time.loss, scores.over_time.error, strict=False):
        assert mean == pytest.approx(loss[first:end].mean()) and error == pytest.approx(wrong[first:end].mean())
    for k in range(2):
        place = np.minimum((p[:, k] * BINS).astype(int), BINS - 1)
        for i in range(BINS):
            there = place == i
            expected = [there.sum(), p[there, k].sum(), (y[there] == k).sum()]
            assert scores.bins[k, i] == pytest.approx(expected)


@pytest.mark.usefixtures("undrawn")
def test_costs_choose_the_threshold_of_run_and_predict(tmp_path):
    (tmp_path / "rows.csv").write_text(words())
    options = ["--target", "y", "--no-hindsight", "--cost", "fp=1,fn=3", "--positive", "no"]
    done = command("run", tmp_path / "rows.csv", *options, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "1 per false positive and 3 per false negative" in done.output
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["positive"] == "no" and summary["threshold"] == 0.25
    table = pq.read_table(tmp_path / "out" / "forecasts.parquet")
    said = np.where(table["p_no"].to_numpy() >= 0.25, "no", "yes")
    assert table["forecast"].to_pylist() == said.tolist()
    wrong = np.where(said == "no", 1.0, 3.0)[said != np.array(table["label"].to_pylist())].sum()
    assert summary["cost"]["total"] == wrong
    costs = ["--cost", "fp=1,fn=3", "--positive", "no", "--out", tmp_path / "p.parquet"]
    assert command("predict", tmp_path / "out" / "model.npz", tmp_path / "rows.csv", *costs).exit_code == 0
    later = pq.read_table(tmp_path / "p.parquet")
    assert later["forecast"].to_pylist() == np.where(later["p_no"].to_numpy() >= 0.25, "no", "yes").tolist()


@pytest.mark.parametrize("text", ["fp=1", "fp=1,fn=x", "fp=-1,fn=2", "fp=0,fn=0", "fp=1,fn=2,tp=3", "1,20"])
def test_costs_that_are_none(text):
    with pytest.raises(ValueError, match="fp=1,fn=20"):
        costs_of(text)


def test_costs_need_two_classes():
    assert decision_of(["a", "b", "c"], None, None) is None
    with pytest.raises(ValueError, match="need two classes"):
        decision_of(["a", "b", "c"], None, (1.0, 2.0))
    with pytest.raises(ValueError, match="the labels are no, yes"):
        decision_of(["no", "yes"], "maybe", None)


@pytest.mark.slow
def test_the_report_speaks_plainly(tmp_path):
    (tmp_path / "rows.csv").write_text(words())
    done = command("run", tmp_path / "rows.csv", "--target", "y", "--out", tmp_path / "out")
    for phrase in (
        "(best constant: ",
        "AUC ",
        "class yes",
        "best linear model with weights of norm at most",
        "guarantee",
    ):
        assert phrase in done.output
    page = (tmp_path / "out" / "index.html").read_text()
    for picture in ("over_time.png", "reliability.png", "regret.png"):
        assert picture in page and (tmp_path / "out" / picture).read_bytes().startswith(b"\x89PNG")
    lines = (tmp_path / "out" / "over_time.csv").read_text().splitlines()
    assert lines[0] == "first_row,last_row,loss,error" and lines[-1].split(",")[1] == "200"
    assert "Ball(" not in done.output


@pytest.mark.usefixtures("undrawn")
def test_numbers_have_baselines_too(tmp_path):
    x = np.random.default_rng(0).normal(size=120)
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{a},{2 * a + 1}\n" for a in x))
    options = ["--target", "y", "--model", "VovkAzouryWarmuth", "--json", "--out", tmp_path / "out"]
    summary = json.loads(command("run", tmp_path / "rows.csv", *options).output)
    assert summary["baseline"]["mean_squared_error"] == pytest.approx(np.var(2 * x + 1))
    assert summary["baseline"]["mean_absolute_error"] == pytest.approx(np.abs(2 * x + 1 - np.median(2 * x + 1)).mean())


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (20.0, 20.0, "0.2000 less"),
        (20.0, 30.0, "0.2000 to 0.3000 less"),
        (-30.0, -30.0, "0.3000 more"),
        (-30.0, -20.0, "0.2000 to 0.3000 more"),
        (-10.0, 20.0, "-0.1000 to 0.2000 less"),
        (20.0, None, "0.2000 less"),
    ],
)
def test_the_best_model_has_less_or_more_loss(low, high, text):
    assert difference(low, high, 100) == text

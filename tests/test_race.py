"""The race: its results, its files, its rivals, and the command."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from regretless import AIOLI, FOLKLORE, best_in_hindsight, plots
from regretless.cli import app
from regretless.cli.race import columns_that_fit
from regretless.core.progress import progress_bar
from regretless.evaluate.race import entrants, race
from regretless.evaluate.race.games import order_of, play_game
from regretless.evaluate.race.kept import Kept
from regretless.evaluate.race.plan import Plan, plan
from regretless.evaluate.race.recipes import recipe_of
from regretless.evaluate.race.rivals import RIVALS
from regretless.evaluate.run.folder import Folder
from regretless.evaluate.run.predict import Request, predict_file
from regretless.evaluate.run.run import Run, Settings
from regretless.streams import stream as named
from regretless.streams.whole import read_whole
from regretless.theory.domains import Ball, WholeSpace

FEW = ["AIOLI", "OGD", "Perceptron", "Vovk-Azoury-Warmuth"]
installed = [name for name, rival in RIVALS.items() if find_spec(rival.module)]


@pytest.fixture(scope="module")
def result():
    return race("breast-cancer", FEW, orders=3, rows=60)


def fruit(folder: Path, rows: int = 60) -> Path:
    rng = np.random.default_rng(0)
    lines = ["size,colour,kind"]
    for i in range(rows):
        size, colour = rng.normal(), ("red", "blue")[int(rng.integers(2))]
        kind = "ripe" if size + (colour == "red") > 0.5 else "raw"
        lines.append(f"{'?' if i == 7 else round(size, 3)},{'' if i == 8 else colour},{kind}")
    (folder / "fruit.csv").write_text("\n".join(lines) + "\n")
    return folder / "fruit.csv"


# ---------------------------------------------------------------------- results


def test_lines_are_medians_of_games_played_by_hand(result):
    line = next(line for line in result.lines() if line.learner == "AIOLI")
    losses, certificates, regrets = [], [], []
    for seed in range(3):
        stream = named("breast-cancer", 60, seed)
        learner = AIOLI(radius=stream.radius)
        p = learner.predict_then_learn(stream.X, stream.y, classes=stream.classes)
        loss = -np.log(p[np.arange(60), stream.y])
        best = best_in_hindsight(stream.X, stream.y, domain=Ball(stream.radius), classes=stream.classes)
        losses.append(loss.mean())
        certificates.append(learner.regret_certificate())
        regrets.append((loss.sum() - best.loss, loss.sum() - best.loss + best.gap))
    assert line.log_loss == pytest.approx(np.median(losses))
    assert line.certificate == pytest.approx(np.median(certificates))
    low, high = np.median(regrets, axis=0)
    assert line.regret_low == pytest.approx(low, abs=1e-6)
    assert line.regret_high == pytest.approx(high, abs=1e-6)
    assert line.regret_low <= line.regret_high <= line.certificate <= line.bound


def test_table_is_sorted_by_log_loss_and_then_by_error(result):
    lines = result.lines()
    assert [line.place for line in lines] == [1, 2, 3, 4]
    losses = [line.log_loss for line in lines]
    assert losses[0] <= losses[1] < math.log(2)
    assert all(map(math.isnan, losses[2:]))
    assert lines[2].error <= lines[3].error
    assert {line.learner for line in lines[2:]} == {"Perceptron", "Vovk-Azoury-Warmuth"}


@pytest.mark.slow
def test_results_are_the_same_for_any_number_of_jobs(result):
    def but_time(race):
        return race.to_frame().drop(columns="microseconds")

    again = race("breast-cancer", FEW, orders=3, rows=60, jobs=2)
    assert but_time(result).equals(but_time(again))
    assert result.streams[0].curves_csv() == again.streams[0].curves_csv()


def test_regret_is_the_same_to_the_bit_for_all_orders_of_the_same_rows():
    games = [play_game("iris", None, seed, ["FOLKLORE"], (), "FOLKLORE") for seed in range(2)]
    totals = [game.log_loss[-1] * 150 - game.regret[0] for game in games]
    assert totals[0] == pytest.approx(totals[1], rel=1e-14)


@pytest.mark.slow
def test_files_pictures_and_forms(result, tmp_path):
    pictures = result.save(tmp_path)
    assert [path.name for path in pictures] == ["breast-cancer.png"]
    assert pictures[0].read_bytes()[:4] == b"\x89PNG"
    table = list(csv.DictReader((tmp_path / "leaderboard.csv").open()))
    assert [row["learner"] for row in table] == [line.learner for line in result.lines()]
    assert table[-1]["log_loss"] == ""
    document = json.loads((tmp_path / "leaderboard.json").read_text())
    assert document["streams"][0]["learners"][-1]["log_loss"] is None
    assert (tmp_path / "leaderboard.md").read_text() == result.to_markdown()
    curves = list(csv.DictReader((tmp_path / "breast-cancer.csv").open()))
    ends = [row for row in curves if row["rows"] == "60" and row["learner"] == "AIOLI" and row["score"] == "log_loss"]
    aioli = next(line for line in result.lines() if line.learner == "AIOLI")
    assert float(ends[0]["median"]) == pytest.approx(aioli.log_loss)


def test_picture_has_a_named_numbered_curve_for_each_learner(result):
    axes = plots.race(result.streams[0], score="error")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        f"{line.place}  {line.learner}" for line in result.lines()
    ]
    looks = {(line.get_linestyle(), line.get_marker(), line.get_color()) for line in axes.lines[:4]}
    assert len(looks) == 4
    assert {text.get_text() for text in axes.texts} == {"1", "2", "3", "4"}
    assert len([line for line in plots.race(result.streams[0]).lines if not line.get_label().startswith("_")]) == 2
    assert len(result.plot()) == 2


def test_sixteen_learners_have_sixteen_looks():
    looks = [plots._numbered(i) for i in range(24)]
    assert len({(str(look["linestyle"]), look["marker"], look["color"]) for look in looks}) == 24
    assert len({(str(look["linestyle"]), look["marker"]) for look in looks}) == 24, "in grey too"


def test_several_streams_have_an_overall_ranking_of_those_that_played_all():
    result = race(["iris", "breast-cancer"], ["AIOLI", "FOLKLORE", "OGD"], orders=1, rows=60)
    assert [refusal.learner for refusal in result.streams[0].refusals] == ["AIOLI"]
    assert {name for name, _ in result.overall()} == {"FOLKLORE", "OGD"}
    assert sum(place for _, place in result.overall()) == 3.0
    text = result.to_markdown()
    assert "## Overall" in text
    assert "AIOLI did not play" in text


# ---------------------------------------------------------------------- who plays


def test_bare_names_play_at_the_streams_radius_and_calls_as_they_say():
    from regretless.evaluate.race.entrants import field_of

    stream = named("adversarial", 50)
    field = field_of(stream, ["aioli", "AIOLI(radius=3)", "ogd, adagrad-norm", "KernelAIOLI", FOLKLORE(radius=2)])
    radii = [getattr(learner, "radius", None) for learner in field.values()]
    assert radii[:3] == [stream.radius, 3, stream.radius]
    assert "FOLKLORE(radius=2)" in field
    assert field_of(stream, {"mine": "AIOLI"})["mine"].radius == stream.radius
    with pytest.raises(ValueError, match="Did you mean AIOLI"):
        field_of(stream, ["AIOLY"])


def test_digits_field_leaves_out_what_would_take_minutes():
    assert "ONS, gamma = 1/4" not in entrants(named("digits", 20))
    assert "AIOLI" not in entrants(named("digits", 20))


def test_whole_field_plays_and_only_what_is_unproved_has_no_certificate():
    lines = race("separable", orders=1, rows=60).lines()
    assert {line.learner for line in lines} == set(entrants(named("separable", 60)))
    assert {line.learner for line in lines if math.isnan(line.certificate)} == {"ONS, gamma = 1/4"}
    without_regret = {line.learner for line in lines if math.isnan(line.regret_high)}
    assert without_regret == {"MondrianForest"}  # it competes with prunings of its trees, and its certificate is exact
    proved = [line for line in lines if line.learner not in without_regret and not math.isnan(line.certificate)]
    assert all(line.regret_high <= line.certificate + 1e-6 for line in proved)


def test_a_learner_of_another_library_can_be_handed_over():
    from sklearn.naive_bayes import GaussianNB

    line, *_ = race("iris", {"naive Bayes": GaussianNB()}, orders=2, rows=60).lines()
    assert line.learner == "naive Bayes"
    assert line.loss == "softmax"
    assert math.isnan(line.certificate)


@pytest.mark.skipif(not installed, reason="no rival is installed")
@pytest.mark.parametrize("name", ["iris", "adversarial"])
def test_rivals_play(name):
    lines = race(name, ["FOLKLORE"], orders=1, rows=80, against=installed).lines()
    assert {line.learner for line in lines} == {"FOLKLORE", *(RIVALS[name].name for name in installed)}
    for line in lines:
        assert 0.0 < line.log_loss < 35.0
        assert line.regret_low <= line.regret_high
        assert line.error < 0.7


@pytest.mark.skipif("vw" not in installed, reason="Vowpal Wabbit is not installed")
def test_wabbit_is_told_as_its_own_way_of_keeping_score():
    from vowpalwabbit import Workspace

    stream = order_of("breast-cancer", 60, 0)
    model, total = Workspace("--loss_function=logistic --quiet"), 0.0
    for x, y in zip(stream.X, stream.y, strict=True):
        words = " ".join(f"{j}:{v:.9g}" for j, v in enumerate(x.tolist()))
        example = model.parse(f"{2 * y - 1} | {words}")
        model.learn(example)  # its prediction is the one before the update
        total += math.log1p(math.exp(-(2 * y - 1) * example.get_prediction()))
        model.finish_example(example)
    game = play_game("breast-cancer", 60, 0, ["OGD"], ("vw",), "Vowpal Wabbit")
    assert game.log_loss[-1] == pytest.approx(total / 60, rel=1e-6)


def test_rivals_that_are_not_installed_say_what_to_install(monkeypatch):
    monkeypatch.setattr("regretless.evaluate.race.rivals.find_spec", lambda module: None)
    with pytest.raises(ValueError, match="pip install vowpalwabbit"):
        race("iris", ["OGD"], orders=1, rows=20, against=["vw"])


# ---------------------------------------------------------------------- files


def test_files_become_numbers(tmp_path):
    data = read_whole(fruit(tmp_path), "kind")
    assert data.name == "fruit"
    assert data.X.shape == (60, 3)
    assert data.classes == ["raw", "ripe"]
    assert data.X[7, 0] == pytest.approx(np.delete(data.X[:, 0], 7).mean())
    assert data.X[8, 1:].tolist() == [0.0, 0.0]
    assert (data.X[:, 1:].sum(axis=1) == 1.0).sum() == 59


def test_sparse_files_are_read_without_their_empty_columns(tmp_path):
    (tmp_path / "few.svm").write_text("1 3:1 9:2\n-1 3:2\n1 9:1\n")
    data = read_whole(tmp_path / "few.svm", format="svmlight")
    assert data.X.tolist() == [[1.0, 2.0], [2.0, 0.0], [0.0, 1.0]]


def test_targets_that_are_no_classes_are_refused(tmp_path):
    (tmp_path / "sizes.csv").write_text("size,weight\n" + "".join(f"{i / 7:.3f},{i}\n" for i in range(300)))
    with pytest.raises(ValueError, match="300 different values; a race needs from 2 to"):
        read_whole(tmp_path / "sizes.csv", "weight")
    with pytest.raises(ValueError, match="nothing"):
        read_whole(tmp_path / "sizes.csv", "nothing")


# ---------------------------------------------------------------------- orders, budgets, interruptions


def dated(folder: Path) -> Path:
    """Rows of two days of the week; the label is that of the next row's day."""
    lines = ["time,size,kind"]
    lines += [f"2024-01-{1 + i % 28:02d} 10:00:00,{i % 5},{'ripe' if i % 28 % 7 < 3 else 'raw'}" for i in range(60)]
    (folder / "dated.csv").write_text("\n".join(lines) + "\n")
    return folder / "dated.csv"


def test_files_with_dates_are_played_in_their_order(tmp_path):
    path = dated(tmp_path)
    result = race(path, ["AIOLI"], target="kind")
    assert result.streams[0].orders == 1
    data = read_whole(path, "kind")
    stream = order_of(data, None, None)
    assert stream.y.tolist() == data.y.tolist()
    p = AIOLI(radius=10.0).predict_then_learn(stream.X, stream.y, classes=stream.classes)
    loss = -np.log(p[np.arange(60), np.searchsorted(stream.classes, stream.y)]).mean()
    assert result.lines()[0].log_loss == pytest.approx(loss)
    assert race(path, ["AIOLI"], target="kind", order="random", orders=2).streams[0].orders == 2
    assert race(fruit(tmp_path), ["AIOLI"], target="kind", order="file").streams[0].orders == 1
    with pytest.raises(ValueError, match="order='up' is not supported"):
        race("iris", order="up")


def test_budget_reduces_orders_before_rows():
    asked = []

    def measure(stream: int, rows: int) -> float:
        asked.append((stream, rows))
        return 1e-3 * rows

    assert plan([1000, 900], 10, 1, 5.0, measure) == Plan([1000, 900], 10, None)  # small: not measured
    assert not asked
    assert plan([50_000], 10, 1, None, measure).orders == 10
    assert plan([50_000], 10, 1, 250.0, measure) == Plan([50_000], 5, 250.0)
    assert plan([50_000], 10, 1, 75.0, measure) == Plan([25_000], 3, 75.0)
    assert plan([50_000], 10, 2, 75.0, measure) == Plan([50_000], 3, 75.0)
    assert plan([50_000, 50_000], 10, 1, 75.0, measure).rows == [12_500, 12_500]
    assert plan([50_000], 10, 1, 75.0, measure, (True, True)) == Plan([50_000], 10, 500.0)
    assert plan([50_000], 10, 1, 1.0, measure).rows == [333]
    assert asked[:2] == [(0, 200), (0, 400)]


def test_budget_is_kept_by_a_race(monkeypatch):
    monkeypatch.setattr("regretless.evaluate.race.plan.SMALL", 0)
    monkeypatch.setattr("regretless.evaluate.race.playing.timed", lambda play: 100.0)
    plans = []
    result = race("iris", ["OGD"], budget=10.0, planned=plans.append)
    assert plans == [Plan([100], 3, 200.0)]  # 150 rows in 100 seconds, and 100 rows at least
    assert result.streams[0].orders == 3 and result.streams[0].games["OGD"][0].rows[-1] == 100


def test_an_interrupted_race_goes_on_with_the_missing_games(tmp_path, monkeypatch):
    path, few = tmp_path / "unfinished.jsonl", ["FOLKLORE", "OGD", "AIOLI"]

    def stop(what: str, done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        race("iris", few, orders=2, rows=60, kept=Kept(path), told=stop)
    text = path.read_text()
    assert len(text.splitlines()) == 4
    path.write_text(text + '{"stream": "iris", "ord')  # stopped while it wrote
    counts = []
    again = race(
        "iris", few, orders=2, rows=60, kept=Kept(path, True), told=lambda what, done, total: counts.append(done)
    )
    assert counts == [4, 5, 6]
    whole = race("iris", few, orders=2, rows=60)
    assert [replace(line, microseconds=0.0) for line in again.lines()] == [
        replace(line, microseconds=0.0) for line in whole.lines()
    ]
    assert again.streams[0].curves_csv() == whole.streams[0].curves_csv()
    assert again.streams[0].refusals == whole.streams[0].refusals
    with pytest.raises(ValueError, match="another number of rows"):
        race("iris", few, orders=2, rows=70, kept=Kept(path, True))
    with pytest.raises(ValueError, match="another data"):
        race("wine", few, orders=2, rows=60, kept=Kept(path, True))
    with pytest.raises(ValueError, match="nothing to resume"):
        Kept(tmp_path / "none" / "unfinished.jsonl", True)
    path.write_text("{}\n")
    with pytest.raises(ValueError, match="damaged"):
        Kept(path, True)


# ---------------------------------------------------------------------- recipes


@pytest.mark.slow
@pytest.mark.parametrize("make", [fruit, dated], ids=["fruit", "dated"])
def test_run_plays_a_line_of_the_leaderboard_again(tmp_path, make):
    path = make(tmp_path)
    names = ["OnlineLogisticRegression", "AIOLI, a = 1/2", "MDA over stumps", "Vovk-Azoury-Warmuth", "Perceptron"]
    result = race(path, names, target="kind", order="file")
    result.save(tmp_path / "race")
    for line in result.lines():
        folder = tmp_path / line.learner
        with Folder(folder) as output:
            run = Run(Settings(str(path), "kind", line.learner, str(tmp_path / "race"), rows_at_once=16), output)
            run.play()
            run.finish(csv=False)
        if line.log_loss == line.log_loss:
            assert run.match.mean_loss == pytest.approx(line.log_loss, rel=1e-12)
        everywhere = isinstance(run.learner.competes_with.domain, WholeSpace)
        certificate = run.learner.regret_certificate(10.0 if everywhere else None)
        assert certificate == pytest.approx(line.certificate, rel=1e-9)
        assert (folder / "recipe.json").exists()
        with (tmp_path / "said.csv").open("wb") as said:
            request = Request(str(path), None, None, None, [], "error")
            rows, _ = predict_file(folder / "model.npz", request, said, True, False, lambda progress: None)
        assert rows == 60


def test_recipes_that_are_missing_or_damaged(tmp_path):
    path = fruit(tmp_path)
    with pytest.raises(ValueError, match="has no recipes"):
        recipe_of(tmp_path, str(path), "AIOLI")
    race(path, ["AIOLI"], target="kind", orders=1).save(tmp_path)
    assert recipe_of(tmp_path, "another.csv", "aioli").learner().n_features_in_ == 4
    with pytest.raises(ValueError, match="no learner 'OGD': choose one of 'AIOLI'"):
        recipe_of(tmp_path, str(path), "OGD")
    file = tmp_path / "recipes" / "fruit.json"
    (tmp_path / "recipes" / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="recipes for fruit, other, and none for"):
        recipe_of(tmp_path, "another.csv", "AIOLI")
    found = json.loads(file.read_text())
    found["preparation"]["mean"] = []
    file.write_text(json.dumps(found))
    with pytest.raises(ValueError, match="the preparation of the rows is damaged"):
        recipe_of(tmp_path, str(path), "AIOLI")
    file.write_text("[]")
    with pytest.raises(ValueError, match="is damaged"):
        recipe_of(tmp_path, str(path), "AIOLI")


# ---------------------------------------------------------------------- the command


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in this process: starting Python and importing the library takes most of its time."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, ["race", "--jobs", "1", *arguments], catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def test_command_prints_tables_and_says_where_the_picture_is(tmp_path):
    fruit(tmp_path)
    few = ("--rows", "60", "--orders", "2", "--learners", "AIOLI,FOLKLORE(radius=5)", "--learners", "Perceptron")
    done = command("fruit.csv", "breast-cancer", "--target", "kind", *few, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("FOLKLORE(radius=5)", "Perceptron", "log loss", "certificate", "bound", "mean place", "2 orders"):
        assert word in done.stdout
    pictures = f"picture: {Path('race', 'fruit.png')}\npicture: {Path('race', 'breast-cancer.png')}\n"
    again = done.stdout.rpartition(pictures)[2]
    assert again.startswith("to run the best line again")
    assert "regretless run fruit.csv --target kind --race race --model " in again
    assert (tmp_path / "race" / "fruit.png").exists()
    assert "\x1b" not in done.stdout + done.stderr, "no colours where there is no terminal"


def test_bad_rows_stop_are_skipped_or_set_aside(tmp_path):
    path = fruit(tmp_path)
    path.write_text(path.read_text() + "1,2,3,4,5\n")
    few = ("fruit.csv", "--target", "kind", "--learners", "OGD", "--orders", "1", "--quiet")
    stopped = command(*few, folder=tmp_path)
    assert stopped.returncode == 3 and "line 62" in stopped.stderr
    skipped = command(*few, "--on-bad", "skip", folder=tmp_path)
    assert skipped.returncode == 0 and "1 bad rows were skipped" in skipped.stderr
    aside = command(*few, "--on-bad", "quarantine", folder=tmp_path)
    assert aside.returncode == 0, aside.stderr
    assert json.loads((tmp_path / "race" / "bad.jsonl").read_text())["line"] == 62


def test_columns_can_be_dropped_and_declared(tmp_path):
    fruit(tmp_path)
    few = ("--target", "kind", "--learners", "OGD", "--orders", "1", "--json")
    done = command("fruit.csv", *few, "--drop", "size", folder=tmp_path)
    assert "3 features" in json.loads(done.stdout)["streams"][0]["about"]


def test_an_interrupted_race_is_not_replaced_by_accident(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["regretless", "race", "iris"])
    (tmp_path / "race").mkdir()
    (tmp_path / "race" / "unfinished.jsonl").write_text("damaged")
    few = ("iris", "--learners", "OGD", "--orders", "1", "--rows", "40")
    refused = command(*few, folder=tmp_path)
    assert refused.returncode == 2
    assert "regretless race iris --resume" in refused.stderr and "--overwrite" in refused.stderr
    assert "damaged" in command(*few, "--resume", folder=tmp_path).stderr
    assert command(*few, "--overwrite", folder=tmp_path).returncode == 0
    assert not (tmp_path / "race" / "unfinished.jsonl").exists()


def test_ctrl_c_keeps_finished_games(tmp_path, monkeypatch):
    from regretless.evaluate.race import kept

    monkeypatch.setattr("sys.argv", ["regretless", "race", "iris"])
    few = ("iris", "--learners", "OGD,FOLKLORE", "--orders", "2", "--rows", "40")
    add = kept.Kept.add

    def stop(self, key, game):
        add(self, key, game)
        if len(self.games) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(kept.Kept, "add", stop)
        stopped = command(*few, folder=tmp_path)
    assert stopped.returncode == 4
    assert "To continue: regretless race iris --resume" in stopped.stderr
    assert len((tmp_path / "race" / "unfinished.jsonl").read_text().splitlines()) == 4
    done = command(*few, "--resume", folder=tmp_path)
    assert done.returncode == 0 and "FOLKLORE" in done.stdout


def test_tables_fit_into_80_columns():
    headings = ["", "learner", "log loss", "error", "regret", "certificate", "bound", "µs/row"]
    body = [["12", "OnlineLogisticRegression", "0.1009", "3.7%", "370.4", "2.8e+15", "25902.6", "34.1"]]
    assert [headings[i] for i in columns_that_fit(headings, body, 80)] == [
        "",
        "learner",
        "log loss",
        "error",
        "regret",
        "certificate",
        "µs/row",
    ]
    assert len(columns_that_fit(headings, body, 120)) == 8


def test_bar_keeps_count_and_time_in_80_columns(monkeypatch):
    import io
    import sys

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    with progress_bar(True, 170, "a stream with a long name, order 1: OnlineLogisticRegression (compiling)") as bar:
        bar.advance(23)
    last = [line for line in shown.getvalue().splitlines() if "23/170" in line]
    assert last and "a stream" in last[-1]


def test_command_prints_json_and_nothing_else(tmp_path):
    done = command(
        "iris", "--rows", "40", "--orders", "2", "--learners", "OGD", "--json", "--out", "x", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["overall"] == [{"learner": "OGD", "mean_place": 1.0}]
    assert (tmp_path / "x" / "iris.png").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["breast-cancr"], 2, ["breast-cancer?", "adversarial"]),
        (["iris", "--learners", "AIOLY"], 2, ["AIOLI?"]),
        (["iris", "--against", "xgboost"], 2, ["river, vw, sklearn"]),
        (["iris", "--json", "--csv"], 2, ["one of"]),
        (["fruit.csv"], 3, ["error:", "label"]),
        (["iris", "--learners", "AIOLI", "--rows", "50"], 3, ["error: no learner can play iris"]),
    ],
)
def test_mistakes_are_told_in_words(tmp_path, monkeypatch, arguments, code, words):
    from typer.testing import CliRunner

    from regretless.cli import app

    fruit(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["race", "--jobs", "1", *arguments])
    assert done.exit_code == code
    told = " ".join(done.stderr.replace("│", " ").split())
    for word in words:
        assert word in told
    assert "Traceback" not in done.stderr

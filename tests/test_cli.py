"""The real command, in a subprocess."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import regretless
from regretless.evaluate import warmup


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = "from regretless.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | environment,
    )


def test_version_and_help():
    assert regretless.__version__ in command("--version").stdout
    done = command("race", "--help")
    assert done.returncode == 0
    assert "--seed" in done.stdout
    assert "Example" in done.stdout


def test_help_lists_every_command():
    done = command("--help")
    assert done.returncode == 0
    for name in ("race", "run", "predict", "figure", "list", "doctor", "warmup"):
        assert re.search(rf"^\W*{name} ", done.stdout, re.MULTILINE), name
    page = Path("docs/command-line.md").read_text()
    assert set(re.findall(r"^\| `regretless (\w+)", page, re.MULTILINE)) == {each.name for each in registered()}


def registered():
    import typer.main

    from regretless.cli import app

    return typer.main.get_command(app).commands.values()


def test_doctor(tmp_path):
    done = command("doctor", REGRETLESS_CACHE_DIR=str(tmp_path), REGRETLESS_DATA=str(tmp_path / "nowhere"))
    assert done.returncode == 0, done.stderr
    for word in ("versions", "extras", "cache", "threads", regretless.__version__, "numba", "pyarrow"):
        assert word in done.stdout
    assert "nothing is compiled yet: `regretless warmup`" in done.stdout
    assert f"REGRETLESS_DATA is not a folder: {tmp_path / 'nowhere'}" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_doctor_for_programs_and_pruning(tmp_path):
    (tmp_path / "kernels-of-old").mkdir()
    (tmp_path / "data").mkdir()
    here = {"REGRETLESS_CACHE_DIR": str(tmp_path), "REGRETLESS_DATA": str(tmp_path)}
    found = json.loads(command("doctor", "--json", **here).stdout)
    assert found["versions"]["regretless"] == regretless.__version__
    assert found["cache"]["stale"] == ["kernels-of-old"]
    assert found["cache"]["compiled"] == 0 and found["threads"]["cores"] >= 1
    assert found["data"]["REGRETLESS_DATA"] == str(tmp_path)
    assert json.loads(command("doctor", "--json", "--prune", **here).stdout)["cache"]["stale"] == []
    assert not (tmp_path / "kernels-of-old").exists() and (tmp_path / "data").exists()


GAMES = [(name, learner, n_classes) for name, learner, kinds in warmup.games() for n_classes in kinds]


def test_every_learner_warms_up():
    from regretless.evaluate.recipe import learners

    assert {name for name, _, _ in GAMES} == set(learners())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "learner", "n_classes"), GAMES, ids=[f"{name}-{k}" for name, _, k in GAMES])
def test_warmup_games_play(name, learner, n_classes):
    warmup.play(learner, n_classes)
    assert not hasattr(learner, "state_")  # a clone played


def test_help_does_not_pay_for_numba_or_scikit_learn():
    program = (
        "import sys, regretless.cli; sys.exit(any(m in sys.modules for m in ('numba', 'sklearn', 'scipy', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_without_the_extra_the_command_says_what_to_install():
    program = "import sys; sys.modules['typer'] = None\nimport regretless.cli"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "regretless[cli]" in done.stderr


def test_the_package_is_the_command():
    done = subprocess.run([sys.executable, "-m", "regretless", "run", "-h"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for option in ("--target", "--drop", "--cost", "--config", "--quiet", "--verbose"):
        assert option in done.stdout


def called(*arguments: str):
    from typer.testing import CliRunner

    from regretless.cli import app

    return CliRunner().invoke(app, arguments)


def test_names_are_listed():
    from regretless.evaluate.recipe import learners
    from regretless.figures import ABOUT
    from regretless.streams import NAMES

    for what, names in (("learners", learners()), ("streams", NAMES), ("figures", ABOUT)):
        lines = called("list", what).output.splitlines()
        assert [line.split()[0] for line in lines] == list(names)
        assert all(line.split(maxsplit=1)[1] for line in lines)
    every = called("list").output
    assert "learners:" in every and "  AIOLI " in every and "  aioli-2 " in every


def test_names_are_completed():
    from regretless.cli.listing import complete_figure, complete_learner
    from regretless.evaluate.recipe import learners

    assert set(learners()) <= set(complete_learner(""))
    assert complete_learner("aio") == ["AIOLI"]
    assert complete_figure("aioli") == ["aioli-1", "aioli-2"]


CONFIG = """
data = "rows.csv"
target = "y"
model = "OGD(radius=2)"
drop = ["b"]
on-bad = "skip"
no-hindsight = true
"""


def test_options_from_a_file(tmp_path, monkeypatch):
    """The command line takes precedence."""
    from commands import draw_nothing

    draw_nothing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{t % 5},{t},{t % 3},{t % 2}\n" for t in range(40))
    Path("rows.csv").write_text(f"a,b,c,y\n{rows}1\n")
    Path("run.toml").write_text(CONFIG)
    done = called("run", "--config", "run.toml", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.output)
    assert summary["columns"] == {"a": "number", "c": "number"} and summary["bad_rows"] == 1
    other = called("run", "--config", "run.toml", "--json", "--drop", "c", "--out", "other", "--target", "y")
    assert json.loads(other.output)["columns"] == {"a": "number", "b": "number"}
    assert called("run", "--config", "run.toml", "--quiet", "--overwrite").output == ""
    told = called("run", "--config", "run.toml", "--verbose", "--overwrite").output
    assert "column a " in told and "OGD(radius=2)" in told
    for text, why in (("targt = 1", "Did you mean 'target'"), ("[run]\ntarget = 1", "sections"), ("x", "TOML")):
        Path("run.toml").write_text(text)
        refused = called("run", "--config", "run.toml", "rows.csv")
        assert refused.exit_code == 2 and why in " ".join(re.findall(r"[^\s│]+", refused.output))

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
    for name in ("race", "run", "predict", "figure", "doctor", "warmup"):
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

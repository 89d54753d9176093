"""The real command, in a subprocess."""

from __future__ import annotations

import subprocess
import sys

import pytest

import noregret


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from noregret.cli import main; main()"
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("stream", ["breast-cancer", "wine", "iris", "adversarial"])
def test_race_prints_a_table(stream):
    done = command("race", "--stream", stream, "--rows", "60", "--seed", "1")
    assert done.returncode == 0, done.stderr
    for word in ("FOLKLORE", "GAF", "ONS", "log loss", "error", "certificate", "row"):
        assert word in done.stdout
    assert ("AIOLI" in done.stdout) == (stream in ("breast-cancer", "adversarial"))
    assert "\x1b" not in done.stdout, "no colours where there is no terminal"


def test_race_is_the_same_for_the_same_seed():
    def losses(seed):
        return [line.split("│")[1:4] for line in command("race", "--rows", "50", "--seed", seed).stdout.splitlines()]

    assert losses("3") == losses("3") != losses("4")


def test_unknown_stream_is_a_usage_error_that_lists_the_streams():
    done = command("race", "--stream", "titanic")
    assert done.returncode == 2
    assert "adversarial" in done.stderr


def test_version_and_help():
    assert noregret.__version__ in command("--version").stdout
    done = command("race", "--help")
    assert done.returncode == 0
    assert "--seed" in done.stdout
    assert "Example" in done.stdout


def test_help_does_not_pay_for_numba_or_scikit_learn():
    program = (
        "import sys, noregret.cli; sys.exit(any(m in sys.modules for m in ('numba', 'sklearn', 'scipy', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_without_the_extra_the_command_says_what_to_install():
    program = "import sys; sys.modules['typer'] = None\nimport noregret.cli"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "noregret[cli]" in done.stderr

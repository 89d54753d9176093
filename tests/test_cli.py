"""The real command, in a subprocess."""

from __future__ import annotations

import subprocess
import sys

import noregret


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from noregret.cli import main; main()"
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=600)


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

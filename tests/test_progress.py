"""The progress bar: shown in a terminal, silent elsewhere and without rich."""

from __future__ import annotations

import sys

import pytest

from regretless.core.progress import progress_bar


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes standard error for a terminal
    monkeypatch.setenv("COLUMNS", "120")


def use(wanted=True, **options):
    with progress_bar(wanted, 10, "squares", **options) as bar:
        bar.advance(4)
        bar.update(description="[cubes]", completed=7, total=20)
        return bar


def test_the_bar_in_a_terminal(terminal, capsys):
    use()
    shown = capsys.readouterr().err
    assert "[cubes]" in shown and "7/20" in shown
    use(unit="bytes")
    assert "7/20 bytes" in capsys.readouterr().err


def test_no_bar_elsewhere(capsys, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert use().speed is None
    assert capsys.readouterr().err == ""


def test_no_bar_if_it_is_not_wanted(terminal, capsys):
    use(wanted=False)
    assert capsys.readouterr().err == ""


def test_no_bar_without_rich(terminal, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    use()
    assert capsys.readouterr().err == ""

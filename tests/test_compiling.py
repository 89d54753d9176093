"""The line that tells a user at a terminal that kernels are compiled."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from regretless.core.kernels import compiling
from regretless.core.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_a_terminal(monkeypatch: Any) -> Terminal:
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    return found


def compile_three(line: Any) -> None:
    with line.while_compiling():
        for _ in range(2):
            with line.while_compiling():
                pass


def test_functions_are_counted_after_a_second(monkeypatch: Any) -> None:
    terminal = at_a_terminal(monkeypatch)
    line, clock = compiling._Line(), iter([0.0, 0.0, 0.4, 1.2, 1.3])
    monkeypatch.setattr(compiling.time, "monotonic", lambda: next(clock))
    compile_three(line)
    said = terminal.getvalue()
    assert said.count("regretless is compiling") == 1
    assert "3 functions, 1 s" in said
    assert said.endswith(compiling.ERASED)
    assert line.seconds == 1.3


def test_the_line_is_erased_by_an_error(monkeypatch: Any) -> None:
    terminal = at_a_terminal(monkeypatch)
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    with pytest.raises(ZeroDivisionError), compiling._Line().while_compiling():
        raise ZeroDivisionError
    assert terminal.getvalue().endswith(compiling.ERASED)


def test_nothing_is_shown_elsewhere(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    compile_three(compiling._Line())
    monkeypatch.setattr(sys, "stderr", None)  # pythonw
    compile_three(compiling._Line())
    assert capsys.readouterr().err == ""


def test_nothing_is_shown_beside_a_progress_bar(monkeypatch: Any) -> None:
    terminal = at_a_terminal(monkeypatch)
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    with progress_bar(True, 3):
        compile_three(compiling.line)
    assert "regretless is compiling" not in terminal.getvalue()
    compile_three(compiling.line)
    assert "regretless is compiling" in terminal.getvalue()

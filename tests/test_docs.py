"""Every example in a docstring, in the README and in docs/ runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import noregret

MODULES = sorted(m.name for m in pkgutil.walk_packages(noregret.__path__, "noregret."))
PAGES = sorted(path for path in [Path("README.md"), *Path("docs").glob("*.md")] if path.exists())


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_code_blocks(page, tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, str(page), "exec"), {})


def test_public_names_have_docstrings_with_examples():
    learners = [getattr(noregret, name) for name in noregret.__all__ if name[0].isupper() and "No" not in name[:2]]
    for learner in learners:
        assert learner.__doc__, learner
        if hasattr(learner, "partial_fit"):
            for part in ("**Guarantee.**", "Parameters", "Examples", ">>> ", "References"):
                assert part in learner.__doc__, (learner, part)

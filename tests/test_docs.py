"""Every example in a docstring, in the README and in docs/ runs and prints what it says."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import io
import pkgutil
import re
from pathlib import Path

import pytest

import regretless
from regretless.core.registry import public_learners

MODULES = sorted(m.name for m in pkgutil.walk_packages(regretless.__path__, "regretless."))
PAGES = sorted([Path("README.md"), *Path("docs").rglob("*.md")])
WITHOUT_CODE = {
    *(f"docs/{name}.md" for name in ("README", "architecture", "benchmarks", "errata", "rounding", "learners/README"))
}
WRITTEN = [*PAGES, Path("CONTRIBUTING.md"), Path("examples/README.md")]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=str)
def test_code_blocks(page, tmp_path, monkeypatch):
    blocks = blocks_of(page)
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        code = compile(block, str(page), "exec")
        if page.parent.name != "learners":  # those are the examples of docstrings, which `test_docstrings` runs
            exec(code, {})


def test_pages_without_code():
    """Every page has a block that runs, but for those of pictures and those named here."""
    without = {page.as_posix() for page in PAGES if not blocks_of(page) and page.parent.name != "figures"}
    assert without == WITHOUT_CODE
    assert sum(text.count("```python") for text in (page.read_text() for page in PAGES)) == sum(
        len(blocks_of(page)) for page in PAGES
    )  # none is missed for how it is indented


@pytest.mark.parametrize("page", WRITTEN, ids=str)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        file, _, _ = target.partition("#")
        assert file.startswith("http") or (page.parent / file).exists(), target


def learners_pages():
    spec = importlib.util.spec_from_file_location("generate_learners", Path("docs/generate_learners.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_learners_pages_are_what_the_code_says():
    """docs/learners is up to date; if this fails, run `make docs`."""
    module = learners_pages()
    pages = {path.relative_to(module.FOLDER): text for path, text in module.pages().items()}
    assert pages == {path.relative_to("docs/learners"): path.read_text() for path in Path("docs/learners").glob("*")}
    in_the_table = set(re.findall(r"`(\w+)`", " ".join(row[0] for row in module.table()[1:])))
    assert in_the_table == set(public_learners()) - {"OnlineToBatch"}
    for path, text in pages.items():
        assert not re.search(r":math:|\]_|^\.\. |>>>", text, re.MULTILINE), (
            path
        )  # nothing is left as it was in the docstring


def test_the_report_of_the_quickstart():
    """What the page shows is what its first block prints."""
    page = Path("docs/quickstart.md").read_text()
    block = re.search(r"^```python\n(.*?report\(\)\))", page, re.MULTILINE | re.DOTALL)[1]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(block, {})
    assert f"```\n{out.getvalue()}```" in page


def test_every_page_is_in_an_index():
    index = Path("docs/README.md").read_text()
    for page in Path("docs").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index
    for page in Path("docs").glob("*/*.md"):
        assert page.name == "README.md" or f"({page.name})" in (page.parent / "README.md").read_text()


def test_public_names_have_docstrings_with_examples():
    for name in regretless.__all__:
        assert name == "__version__" or getattr(regretless, name).__doc__, name
    for learner in public_learners().values():
        for part in ("**Guarantee.**", "Parameters", "Examples", ">>> ", "References"):
            assert part in learner.__doc__, (learner, part)

"""Every example in a docstring, in the README and in docs/ runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

import regretless
from regretless.core.files.stored import Stored
from regretless.evaluate.registry import public_predictors

MODULES = sorted(
    m.name for m in pkgutil.walk_packages(regretless.__path__, "regretless.") if not m.name.endswith("__main__")
)
PAGES = sorted([Path("README.md"), *Path("docs").rglob("*.md")])
WITHOUT_CODE = {
    *(f"docs/{name}.md" for name in ("README", "architecture", "benchmarks", "errata", "gpu", "rounding")),
    *(f"docs/{folder}/README.md" for folder in ("guide", "learners")),
}
WRITTEN = [*PAGES, Path("CONTRIBUTING.md"), Path("examples/README.md")]


@pytest.mark.pages
@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.pages
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


def test_errata_name_code_that_exists():
    named = re.findall(r"`((?:learners|theory)/[\w/]+\.py)`,\s+`(\w+)`", Path("docs/errata.md").read_text())
    assert len(named) > 15
    for file, name in named:
        assert re.search(rf"\b{name}\b", (Path("src/regretless") / file).read_text()), (file, name)


@pytest.mark.parametrize("page", WRITTEN, ids=str)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        file, _, _ = target.partition("#")
        assert file.startswith("http") or (page.parent / file).exists(), target


def generator(name):
    spec = importlib.util.spec_from_file_location(name, Path(f"docs/{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_learners_pages_are_what_the_code_says():
    """docs/learners is up to date; if this fails, run `make docs`."""
    module = generator("generate_learners")
    pages = module.pages()
    assert pages == {path: path.read_text() for path in module.FOLDER.glob("*")}
    index = pages[module.FOLDER / "README.md"]
    assert set(re.findall(r"^\| \[`(\w+)`\]", index, re.MULTILINE)) == set(public_predictors())
    for path, text in pages.items():
        assert not re.search(r":math:|\]_|^\.\. |>>>", text, re.MULTILINE), path  # no docstring markup is left


def test_the_report_of_the_quickstart():
    """docs/quickstart.md shows the output of its code; if this fails, run `make docs`."""
    assert Path("docs/quickstart.md").read_text() == generator("generate_report").page()


def test_every_page_is_in_an_index():
    index = Path("docs/README.md").read_text()
    for page in Path("docs").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index
    for page in Path("docs").glob("*/*.md"):
        assert (
            page.name == "README.md"
            or page.parent.name == "site"
            or f"({page.name})" in (page.parent / "README.md").read_text()
        )


def test_public_names_have_docstrings_with_examples():
    for name in regretless.__all__:
        assert name == "__version__" or getattr(regretless, name).__doc__, name
    for learner in public_predictors().values():
        for part in ("\n\n    **Choose it when** ", "**Guarantee.**", "Parameters", "Examples", ">>> ", "References"):
            assert part in learner.__doc__, (learner, part)


def test_the_architecture_page_lists_every_module():
    """Except the modules of single learners and figures, so that these can be added without an edit."""
    page = Path("docs/architecture.md").read_text()
    rows = page[page.index("## Packages") : page.index("## The contract of a learner")]
    own = {learner.__module__ for learner in public_predictors().values()}
    for name in MODULES:
        stem = name.rpartition(".")[2]
        package = bool(list(Path("src", *name.split(".")).glob("__init__.py")))
        listed = f"`{stem}`" in rows or f"{stem}/`" in rows or f".{stem}`" in rows
        assert listed or name in own or name.startswith("regretless.figures.") or (package and stem == "learners"), name


def test_the_contract_names_methods_that_exist():
    text = Path("docs/architecture.md").read_text()
    contract = text[text.index("## The contract of a learner") : text.index("### Adding a learner")]
    tables = [line.split("|")[1] for line in contract.splitlines() if line.startswith("| `")]
    names = {name for cell in tables for name in re.findall(r"`(\w+)", cell)}
    public_predictors()  # imports them
    known = {name for learner in Stored.registry.values() for name in dir(learner)}
    assert len(names) > 25
    assert names <= known, names - known

"""What the site is made of: links, docstrings and cards. `make site` builds it, and looks at every page."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path

import pytest

import regretless
from regretless import bounds

FOLDER = Path("docs/site").resolve()
needs_sphinx = pytest.mark.skipif(find_spec("sphinx") is None, reason="Sphinx is not installed: pip install '.[docs]'")


@pytest.fixture(autouse=True)
def site_modules(monkeypatch):
    """The scripts of the site by their names, some of which other tests use for modules of their own."""
    names = [path.stem for path in FOLDER.glob("*.py")]
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(before)


def module(name):
    return importlib.import_module(name)


def test_links_lead_to_pages_of_the_site():
    text = "[a](../README.md) [b](AIOLI.md#guarantee) [`aioli`](../bounds.md) [c](../../examples/bandit.py) [d](https://x.org)"
    assert module("sources").rewritten(text, "docs/learners/README.md") == (
        "[a](/index.md) [b](/learners/AIOLI.md#guarantee) [`aioli`](/bounds/aioli.md) [c](/gallery/bandit.rst) "
        "[d](https://x.org)"
    )
    with pytest.raises(ValueError, match="leads to no page of the site"):
        module("sources").rewritten("[x](../pyproject.toml)", "docs/concepts.md")


def test_formulas_and_code_blocks():
    rewritten = module("sources").rewritten
    assert rewritten("$`a_1`$", "docs/x.md") == "{math}`a_1`"
    assert rewritten("```math\nx\n```", "docs/x.md") == "```{math}\nx\n```"
    code = "```python\ny = [1](x)\n```"
    assert rewritten(code, "docs/x.md") == code


def test_every_page_of_the_repository_is_on_the_site():
    pages = module("sources").pages()
    pages["guide/index.md"] += "\n"
    assert {"quickstart.md", "which-learner.md", "learners/AIOLI.md", "guide/index.md", "changelog.md"} <= set(pages)
    index = {"index.md": "", "start.md": "", "project.md": "", "references.md": "", "bounds/index.md": ""}
    arranged = module("contents").arranged(pages | index)
    placed = set(re.findall(r"^/([\w/-]+)$", "".join(arranged.values()), re.MULTILINE))
    assert {page.removesuffix(".md") for page in pages} <= placed | {
        "benchmarks",
        *(f"{f}/index" for f in ("guide", "learners")),
    }


def test_every_bound_has_a_card():
    games, cards = module("games"), module("cards")
    assert games.GAMES.keys() == set(bounds.__all__)
    known = cards.errata()
    for name in bounds.__all__:
        function = getattr(bounds, name)
        text = cards.card(function, ["AIOLI"], "A stream.")
        assert f"regretless.bounds.{name}" in text and "## Assumptions" in text and f"/bounds/{name}.png" in text
        if "docs/errata.md" in inspect.getdoc(function):
            assert name in cards.ERRATA, name
        for code in cards.ERRATA.get(name, ()):
            assert f"/errata.md#{known[code][1]}" in text


@pytest.mark.parametrize("name", ["aioli", "mixture", "perceptron"])
def test_a_game_is_within_its_bound(name):
    picture = module("games").GAMES[name]()
    measured = [values for label, values in picture.curves.items() if label != "bound"]
    assert measured
    for values in measured:
        assert all(value <= most + 1e-9 for value, most in zip(values, picture.curves["bound"], strict=True))


@needs_sphinx
def test_every_public_name_is_in_the_reference():
    reference = module("reference")
    pages = reference.pages()
    for name in regretless.__all__:
        assert name == "__version__" or f":doc:`{name}`" in pages["api/index.rst"], name
    for name in bounds.__all__:
        assert f"autofunction:: regretless.bounds.{name}\n" in pages["api/bounds.rst"]
    assert "predict_then_learn" in pages["api/AIOLI.rst"] and "get_params" not in pages["api/AIOLI.rst"]


@needs_sphinx
def test_docstrings_become_restructured_text():
    lines = (
        "One line.\n\nParameters\n----------\nradius, d : B, |u| at most\n    that; "
        "docs/errata.md.\n\nExamples\n--------\n>>> 1 | 2\n3"
    )
    text = "\n".join(module("docstrings").rewritten(lines.splitlines()))
    assert "- **radius**, **d**: B, \\|u\\| at most\n  that; :doc:`errata </errata>`." in text
    assert ".. rubric:: Examples\n\n>>> 1 | 2\n3" in text


def test_references_are_plain_text():
    text = module("references").page()
    assert text.count("\n(ref-") == Path("REFERENCES.bib").read_text(encoding="utf-8").count("\n@")
    assert "Jézéquel, Rémi" in text and "{" not in text and "\\" not in text


def test_the_checks_of_a_built_site(tmp_path):
    problems = module("check").problems
    assert problems(tmp_path) == [f"{tmp_path} has no pages: run `make site` first."]
    (tmp_path / "a.html").write_text('<a href="b.html#here"></a><a href="#top"></a><img src="x.png"><h1 id="top"></h1>')
    (tmp_path / "b.html").write_text('<script src="https://elsewhere.org/a.js"></script><a href="c.html"></a>')
    found = sorted(problems(tmp_path))
    assert found == [
        "a.html: the anchor of b.html#here does not exist",
        "a.html: x.png is missing",
        "b.html: loads https://elsewhere.org/a.js from elsewhere",
        "b.html: the link c.html leads nowhere",
    ]


def test_the_inventories_know_the_names_we_use():
    for project, name in (
        ("numpy", "numpy.ndarray"),
        ("scipy", "scipy.sparse.csr_matrix"),
        ("sklearn", "sklearn.base.BaseEstimator"),
    ):
        text = (FOLDER / "inventories" / f"{project}.inv").read_bytes()
        assert f"{name} py:class" in zlib.decompress(text.split(b"zlib.\n", 1)[1]).decode()


def test_the_release_has_one_version():
    cited = re.search(r"^version: (.*)$", Path("CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert cited == regretless.__version__
    assert f"## [{regretless.__version__}]" in Path("CHANGELOG.md").read_text(encoding="utf-8")


def test_the_readme_is_one_page():
    assert len(Path("README.md").read_text(encoding="utf-8").splitlines()) < 120

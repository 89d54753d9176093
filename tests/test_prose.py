"""The text of the project is plain English: phrases that readers stumble over do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

# Pattern -> what to write instead.
FORMER_NAME = "no" + "regret"
AVOID = {
    r"\banew\b": "again, new",
    r"\bsuffers?\b": "has loss, incurs",
    r"\brooms\b": "packages, modules",
    r"\b(loss|losses|mistakes|microseconds|µs|ns) a (row|round)\b": "per row",
    r"\bwho (is|are) told\b|\bwho (forecasts|learns|waits)\b": "name the learner or the user",
    r"\bwhat there is\b": "name the things",
    r"(?<!there )\bis no (number|class)\b": "is not a number, is not a class",
    r"\ball the same\b": "still",
    r"\blearners? of (classes|numbers|two)\b": "classifier, regressor, binary classifier",
    r"\bspeaks? of\b": "is about",
    FORMER_NAME: "regretless",
}
PACKAGES = ("core", "theory", "streams", "learners", "evaluate", "figures", "serve", "cli")
TEXTS = [
    Path("README.md"),
    Path("CONTRIBUTING.md"),
    *Path("docs").glob("*.md"),
    *Path("docs/figures").glob("*.md"),
    *Path("docs/learners").glob("*.md"),
    *Path("docs/guide").glob("*.md"),
    *Path("docs/site").glob("*.py"),
    Path("docs/site/index.md"),
    Path("SECURITY.md"),
    *Path("examples").glob("*.*"),
    *Path("benchmarks").glob("*.py"),
    *(path for package in PACKAGES for path in Path("src/regretless", package).rglob("*.py")),
]


@pytest.fixture(scope="module")
def lines():
    return [
        (f"{path}:{number}", line)
        for path in TEXTS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    ]


@pytest.mark.parametrize("pattern", AVOID)
def test_phrases_to_avoid(pattern, lines):
    found = [f"{place}: {line.strip()}" for place, line in lines if re.search(pattern, line)]
    assert not found, f"write {AVOID[pattern]!r} instead:\n" + "\n".join(found)


def test_the_former_name_is_mentioned_once():
    assert Path("CHANGELOG.md").read_text(encoding="utf-8").count(FORMER_NAME) == 1

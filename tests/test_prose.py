"""The text of the project is plain English: phrases that readers stumble over do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

# Pattern -> what to write instead.
AVOID = {
    r"\banew\b": "again, new",
    r"\bsuffer(s|ed)?\b": "has loss, loses, incurs",
    r"\brooms\b": "packages, modules",
    r"\blog loss a row\b|\b(costs?|takes?|numbers?|weights?|labels?|microseconds|µs|ns) a row\b": "per row",
    r"\ba row(?= (and|or) a (class|feature))": "per row",
    r"\bwho (is told|are told|forecasts|learns|waits|knows)\b": "name the learner or the user",
    r"\bwhat there is\b": "name the things",
    r"\bis (told|no number|no class)\b": "sees, is not a number, is not a class",
    r"\ball the same\b": "still",
    r"\bwhatever (B|n|it is)\b": "for any B, for any n",
    r"\b(begin|goes on|go on) from what\b": "continue from",
    r"\bfor ever\b": "forever, without end",
    r"\bnobody\b.*\b(knows|tells|told)\b": "say who does not have it",
    r"\bmade of a learner\b|\blearners? of (classes|numbers|two)\b": "classifier, regressor, binary classifier",
    r"\bspeaks? of\b": "is about",
    r"\bstands? beside\b|\bbeside (it|them)\b": "next to, with",
    r"\bnoregret\b": "regretless",
}
TEXTS = [
    Path("README.md"),
    Path("CONTRIBUTING.md"),
    *(page for page in Path("docs").rglob("*.md")),
    *Path("src").rglob("*.py"),
    *Path("src").rglob("*.pyi"),
    *Path("examples").glob("*"),
    *Path("benchmarks").glob("*.py"),
]


@pytest.mark.parametrize("pattern", AVOID)
def test_phrases_to_avoid(pattern):
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in TEXTS
        if path.is_file()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(pattern, line)
    ]
    assert not found, f"write {AVOID[pattern]!r} instead:\n" + "\n".join(found)


def test_the_former_name_is_mentioned_once():
    assert Path("CHANGELOG.md").read_text(encoding="utf-8").count("noregret") == 1

"""REFERENCES.bib as a page of the site."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

BIBLIOGRAPHY = Path(__file__).parents[2] / "REFERENCES.bib"
ACCENTS = {"'": "\u0301", "`": "\u0300", '"': "\u0308", "^": "\u0302", "~": "\u0303", "v": "\u030c", "c": "\u0327"}


def plain(text: str) -> str:
    """Text without the commands of LaTeX."""

    def accent(found: re.Match[str]) -> str:
        return unicodedata.normalize("NFC", found[2].replace("\\i", "i") + ACCENTS[found[1]])

    text = re.sub(r"\{?\\(['`\"^~vc])\s*\{?(\\i|\w)\}?\}?", accent, text)
    return re.sub(r"[{}]", "", " ".join(text.split())).replace("--", "–").replace("\\&", "&")


def page() -> str:
    """One paragraph per work, with its key as the target of links."""
    text = "# References\n\nThe texts behind the learners and bounds, by the key that pages and docstrings use.\n"
    for key, rest in re.findall(r"^@\w+\{([\w-]+),(.*?)^\}", BIBLIOGRAPHY.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        found = re.findall(r"^\s*(\w+)\s*=\s*\{(.*?)\},?\s*$", rest, re.MULTILINE | re.DOTALL)
        field = {name: plain(value) for name, value in found}
        authors = field["author"].replace(" and ", "; ")
        where = [field[name] for name in ("journal", "booktitle", "publisher", "note") if name in field]
        text += f"\n(ref-{key})=\n**{key}**: {authors} ({field['year']}). *{field['title']}*. {', '.join(where)}.\n"
    return text

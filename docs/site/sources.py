"""The pages of the repository as sources of the site: links lead to pages of the site, formulas are those of MyST."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from regretless import bounds

ROOT = Path(__file__).parents[2]
# Files outside docs/ that are pages of the site, and files that another page stands for.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
INSTEAD = {
    "README.md": "index.md",
    "docs/README.md": "index.md",
    "REFERENCES.bib": "references.md",
    "examples/README.md": "gallery/index.rst",
    "docs/bounds.md": "bounds/index.md",
}
LINK = re.compile(r"(!?\[(?:`([^`\]]*)`|[^\]]*)\])\(([^)\s]+)\)")


def site_path(path: str) -> str:
    """Where a file of the repository is on the site. Raises KeyError if it is not part of it."""
    if path in INSTEAD:
        return INSTEAD[path]
    if path in PAGES:
        return PAGES[path]
    if example := re.fullmatch(r"examples/(\w+)\.py", path):
        return f"gallery/{example[1]}.rst"
    if path.startswith("docs/"):
        return re.sub(r"README\.md$", "index.md", path.removeprefix("docs/"))
    raise KeyError(path)


def resolve(folder: PurePosixPath, target: str) -> str:
    """A relative path as one from the root of the repository."""
    parts: list[str] = []
    for part in (folder / target).parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def rewritten(text: str, path: str) -> str:
    """The text of a page of the repository, `path` from its root, as a source of the site."""
    folder = PurePosixPath(path).parent

    def link(found: re.Match[str]) -> str:
        label, code, target = found.groups()
        file, hash_, anchor = target.partition("#")
        if file.startswith(("http:", "https:", "mailto:")) or not file:
            return found[0]
        label = re.sub(r"^\[([\w-]+)\.md\]$", r"[\1]", label)  # on a site, pages are not files
        name = (code or "").removeprefix("regretless.bounds.")
        where = resolve(folder, file)
        if where == "docs/bounds.md" and name in bounds.__all__:
            return f"{label}(/bounds/{name}.md)"
        try:
            return f"{label}(/{site_path(where)}{hash_}{anchor})"
        except KeyError:
            raise ValueError(f"{path}: the link {target!r} leads to no page of the site.") from None

    blocks = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    for i, block in enumerate(blocks):
        if i % 2:
            blocks[i] = re.sub(r"\A```math", "```{math}", block)
        else:
            blocks[i] = LINK.sub(link, re.sub(r"\$`([^`]+)`\$", r"{math}`\1`", block))
    return "".join(blocks)


def pages() -> dict[str, str]:
    """Every page that the repository has, by its path on the site."""
    found = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "site"]
    found += [ROOT / name for name in PAGES]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in found}
    return {site_path(path): rewritten(text, path) for path, text in texts.items() if path not in INSTEAD}


def pictures() -> dict[str, Path]:
    """Every picture of the repository's pages, by its path on the site."""
    return {
        path.relative_to(ROOT / "docs").as_posix(): path
        for path in (ROOT / "docs").rglob("*.png")
        if path.parent.name != "site"
    }

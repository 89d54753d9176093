"""Check a built site: `python docs/site/check.py build/site/html [--notebooks]`.

Every link to a page or an anchor of the site leads somewhere, nothing that a page needs is loaded from elsewhere, and
every example can be downloaded as a script and as a notebook. With --notebooks these notebooks are run, as a reader
would, which takes a minute or two.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import gallery

LOADED = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}
NOT_LOADED = {"canonical", "next", "prev", "index", "search", "author", "copyright", "help", "top", "up"}


class Page(HTMLParser):
    """The links, anchors and assets of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect what a tag names."""
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in LOADED and given.get(LOADED[tag]) and given.get("rel", "") not in NOT_LOADED:
            self.assets.append(given[LOADED[tag]])


def problems(folder: Path) -> list[str]:
    """What is wrong with the pages of a site."""
    paths = [path for path in folder.rglob("*.html") if "_static" not in path.parts]  # the theme's own templates
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in paths}
    found = [] if pages else [f"{folder} has no pages: run `make site` first."]
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        for asset in page.assets:
            if urlsplit(asset).scheme in ("http", "https") or asset.startswith("//"):
                found.append(f"{name}: loads {asset} from elsewhere")
            elif not asset.startswith("data:") and not (path.parent / unquote(urlsplit(asset).path)).exists():
                found.append(f"{name}: {asset} is missing")
        for link in page.links:
            where = urlsplit(link)
            if where.scheme or link.startswith("//"):
                continue
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            if not target.exists():
                found.append(f"{name}: the link {link} leads nowhere")
            elif where.fragment and target in pages and unquote(where.fragment) not in pages[target].anchors:
                found.append(f"{name}: the anchor of {link} does not exist")
    return found


def notebooks(folder: Path) -> dict[str, Path]:
    """The notebooks of the gallery by name of the example."""
    return {path.stem: path for path in (folder / "_downloads").rglob("*.ipynb")}


def run(path: Path) -> str:
    """Run a notebook in an empty folder; what went wrong, or nothing."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            nbformat.read(path, as_version=4), timeout=300, resources={"metadata": {"path": folder}}
        )
        try:
            client.execute()
        except CellExecutionError as error:
            return f"{path.stem}: {error}"
    return ""


def main() -> None:
    """Report problems, and fail if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--notebooks", action="store_true", help="run the notebooks of the gallery")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    chosen = parser.parse_args()
    found = problems(chosen.folder)
    have = notebooks(chosen.folder)
    wanted = {Path(name).stem for name in gallery.files() if name.endswith(".py")}
    found += [f"there is no notebook of {name}" for name in sorted(wanted - have.keys())]
    for path in have.values():
        json.loads(path.read_text("utf-8"))
    if chosen.notebooks:
        some = [path for name, path in sorted(have.items()) if name not in gallery.not_run()]
        with ThreadPoolExecutor(chosen.jobs) as pool:
            found += filter(None, pool.map(run, some))
        print(f"ran {len(some)} notebooks")
    print(
        "\n".join(found) or f"{len(list(chosen.folder.rglob('*.html')))} pages: every link and anchor leads somewhere"
    )
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

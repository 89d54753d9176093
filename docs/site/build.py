"""Build the site: `make site`. The result is build/site/html.

The pages of the repository, the generated ones and the examples are assembled in build/site/source, which Sphinx reads;
nothing is generated inside docs/. Warnings are errors. A second build reads only what changed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import cards
import charts
import contents
import gallery
import references
import sources

import reference

HERE = Path(__file__).parent
BUILD = sources.ROOT / "build" / "site"


def assemble(folder: Path, jobs: int) -> None:
    """Write the sources of the site."""
    bounds = cards.files(folder.parent / "cards", jobs)
    pages = {
        **sources.pages(),
        **{name: text for name, text in bounds.items() if isinstance(text, str)},
        "index.md": sources.rewritten((HERE / "index.md").read_text("utf-8"), "docs/index.md"),
        "start.md": contents.START_PAGE,
        "project.md": contents.PROJECT_PAGE,
        "references.md": references.page(),
    }
    pages["benchmarks.md"] = charts.page(pages["benchmarks.md"])
    wanted: dict[str, str | bytes] = {
        **contents.arranged(pages),
        **{name: picture for name, picture in bounds.items() if isinstance(picture, bytes)},
        **reference.pages(),
        "conf.py": (HERE / "conf.py").read_text("utf-8"),
        "_static/site.css": (HERE / "static" / "site.css").read_text("utf-8"),
        **{name: path.read_bytes() for name, path in sources.pictures().items()},
    }
    wanted |= charts.pictures()
    write(folder, wanted, keep=("gallery/", "sg_"))


def write(folder: Path, wanted: Mapping[str, str | bytes], keep: tuple[str, ...] = ()) -> None:
    """Make a folder hold these files; those that are up to date keep their time stamps."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in wanted and not name.startswith(keep or ("\0",)):
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        content = text.encode() if isinstance(text, str) else text
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def main() -> None:
    """Assemble the sources, and run Sphinx."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=BUILD, help="the folder for sources and pages")
    parser.add_argument("--fresh", action="store_true", help="build everything again")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes for examples and pages"
    )
    chosen = parser.parse_args()
    if chosen.fresh:
        shutil.rmtree(chosen.out, ignore_errors=True)
    source = chosen.out.resolve() / "source"
    for folder in (source, chosen.out / "examples"):
        folder.mkdir(parents=True, exist_ok=True)
    assemble(source, chosen.jobs)
    write(chosen.out / "examples", gallery.files())
    environment = os.environ | {
        "REGRETLESS_SITE": str(HERE),
        "REGRETLESS_EXAMPLES": str(chosen.out / "examples"),
        "REGRETLESS_SITE_JOBS": str(chosen.jobs),
        "MPLBACKEND": "agg",
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
    }
    options = ["-W", "--keep-going", "-q", "-j", str(chosen.jobs), "-b", "html", "-d", str(chosen.out / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(chosen.out / "html")]
    raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()

"""The gallery: the scripts of examples/, run while the site is built."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
HEADER = """\
Gallery
=======

Every example was run when this site was built; each can be downloaded as a script or a notebook.

"""
# Examples that read a data set, which may not be on this machine.
NEED_DATA = {"electricity": "elec2", "mnist": "mnist"}


def files() -> dict[str, str]:
    """The scripts and the text above the gallery, by file name."""
    scripts = {path.name: path.read_text("utf-8") for path in EXAMPLES.glob("*.py")}
    return {"GALLERY_HEADER.rst": HEADER} | scripts


def not_run() -> list[str]:
    """The examples whose data set is not in REGRETLESS_DATA: they are shown without output."""
    folder = Path(os.environ.get("REGRETLESS_DATA", ""))
    known = [path.name for path in folder.iterdir()] if folder.name else []
    return [name for name, data in NEED_DATA.items() if not any(each.startswith(data) for each in known)]


def settings(examples: Path, jobs: int) -> dict[str, Any]:
    """The settings of sphinx-gallery, for the scripts in the folder `examples`."""
    skipped = "|".join(not_run()) or "$^"
    return {
        "examples_dirs": str(examples),
        "gallery_dirs": "gallery",
        "filename_pattern": rf"/(?!(?:{skipped})\.py)\w+\.py$",
        "within_subsection_order": "ExampleTitleSortKey",
        "download_all_examples": False,
        "remove_config_comments": True,
        "show_signature": False,
        "write_computation_times": False,
        "min_reported_time": 1,
        "abort_on_example_error": True,
        "image_scrapers": ("matplotlib",),
        "parallel": jobs if jobs > 1 else False,
        "default_thumb_file": str(Path(__file__).parents[1] / "game.png"),
    }

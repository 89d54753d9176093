"""`regretless doctor` and `regretless warmup`: check the installation, and compile all kernels."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from regretless.cli.terminal import say
from regretless.core.progress import progress_bar

CORE = ("numpy", "scipy", "scikit-learn", "numba", "joblib")
EXTRAS = {
    "cli": ("typer", "rich", "matplotlib", "pyarrow"),
    "frames": ("narwhals", "pandas", "polars"),
    "rivals": ("river", "vowpalwabbit"),
}


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Remove the compiled code of other versions.")] = False,
) -> None:
    """Show installed versions, the folders of compiled code and data, and possible improvements.

    Example: regretless doctor
    """
    import json as as_json

    found = look()
    if prune:
        for name in found["cache"]["stale"]:
            shutil.rmtree(Path(found["cache"]["folder"]).parent / name)
        found = look()
    if json:
        print(as_json.dumps(found, indent=1))
        return
    for title, entries in found.items():
        print(title)
        for name, value in entries.items():
            say(f"  {name:<16} {', '.join(map(str, value)) or 'none' if isinstance(value, list) else value}")
    for advice in advise(found):
        say(f"* {advice}")


def look() -> dict[str, dict[str, Any]]:
    """Collect versions, extras, cache and data folders."""
    import numba

    from regretless import __version__
    from regretless.core.kernels.jit import cache_folder

    folder = cache_folder()
    home = None if folder is None else folder.parent
    stale = [] if home is None else sorted(p.name for p in home.glob("kernels-*") if p != folder)
    return {
        "versions": {
            "regretless": __version__,
            "python": sys.version.split()[0],
            **{name: _version(name) for name in CORE},
        },
        "extras": {name: [f"{each} {_version(each)}" for each in parts] for name, parts in EXTRAS.items()},
        "cache": {
            "folder": str(folder) if folder else "none: no writable folder",
            "compiled": 0 if folder is None else len(list(folder.glob("*.nbc"))),
            "megabytes": 0 if folder is None else round(sum(p.stat().st_size for p in folder.iterdir()) / 1e6, 1),
            "stale": stale,
        },
        "threads": {"cores": os.cpu_count() or 1, "numba": numba.get_num_threads(), "blas": _blas_threads()},
        "data": {"REGRETLESS_DATA": os.environ.get("REGRETLESS_DATA", "not set"), "cache": str(home and home / "data")},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _blas_threads() -> int:
    import numpy  # noqa: F401 - loads its BLAS, so that threadpoolctl can report it
    from threadpoolctl import threadpool_info

    return max((info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"), default=1)


def advise(found: dict[str, dict[str, Any]]) -> list[str]:
    """Possible improvements, and how to make them."""
    advice = []
    for extra, parts in found["extras"].items():
        missing = [part.split()[0] for part in parts if part.endswith("not installed")]
        if missing and extra == "rivals":
            advice.append(f"regretless race --against needs {' and '.join(missing)}: pip install {' '.join(missing)}")
        elif missing:
            advice.append(f'not installed: {", ".join(missing)}. Run pip install "regretless[{extra}]".')
    cache = found["cache"]
    if cache["folder"].startswith("none"):
        advice.append("every process compiles again: set REGRETLESS_CACHE_DIR to a writable folder.")
    elif cache["compiled"] == 0:
        advice.append("nothing is compiled yet: `regretless warmup` compiles once for all later processes.")
    if cache["stale"]:
        advice.append(f"compiled code of {len(cache['stale'])} other versions: `regretless doctor --prune` removes it.")
    if found["data"]["REGRETLESS_DATA"] != "not set" and not Path(found["data"]["REGRETLESS_DATA"]).is_dir():
        advice.append(f"REGRETLESS_DATA is not a folder: {found['data']['REGRETLESS_DATA']}")
    return advice or ["no problems found."]


def warmup() -> None:
    """Compile all learners now, once per machine, so that the first use does not have to wait.

    Example: regretless warmup
    """
    import time

    from regretless.evaluate.warmup import games, play

    started = time.perf_counter()
    every = [(name, learner, K) for name, learner, kinds in games() for K in kinds]
    with progress_bar(True, len(every), "compiling", transient=True) as bar:
        for name, learner, n_classes in every:
            bar.update(description=name)
            play(learner, n_classes)
            bar.advance()
    print(f"compiled {len(every)} cases of all learners in {time.perf_counter() - started:.0f} s.")

"""The machine and the versions used for the measurements, and the rate of its matrix product."""

from __future__ import annotations

import os
import platform
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks.timing import Contender
from regretless.core.types import Array

PACKAGES = ("regretless", "numpy", "scipy", "numba", "scikit-learn", "river", "vowpalwabbit")
SIDE = 1000  # of the matrices whose product gives the machine's rate


def processor() -> str:
    """The name of the processor, if the system provides it."""
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str | None]:
    """The versions of all installed packages; None for the others."""
    found: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def describe() -> dict[str, Any]:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": sorted({f"{each['internal_api']} {each['version']}" for each in blas}),
        "versions": versions(),
        "load": load,
        "date": date.today().isoformat(),
    }


def in_words(machine: dict[str, Any]) -> str:
    there = [f"{package} {number}" for package, number in machine["versions"].items() if number]
    absent = [package for package, number in machine["versions"].items() if not number]
    text = f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; Python {machine['python']}, "
    text += ", ".join([*there, *machine["blas"]])
    text += f"; load {machine['load']:.1f} at the start" if machine["load"] is not None else ""
    return text + (f"; not installed: {', '.join(absent)}" if absent else "") + f"; {machine['date']}."


def matrix_product() -> Contender:
    """The product of two square matrices of doubles; a "row" is one operation, of 2 SIDE^3."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(SIDE, SIDE)), rng.normal(size=(SIDE, SIDE))
    out: Array = np.empty((SIDE, SIDE))

    def run() -> None:
        np.matmul(A, B, out=out)

    return Contender(2 * SIDE**3, run)

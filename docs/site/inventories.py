"""Write inventories/numpy.inv, from the names of the installed NumPy: `python docs/site/inventories.py`.

An inventory says on which page of a manual a name is described, so that pages can link to it without a network. Those
of SciPy and scikit-learn in the folder are the ones that their manuals publish (objects.inv). NumPy's manual has one
page per function and class, named after it, and a few collective pages, which `COLLECTIVE` lists.
"""

from __future__ import annotations

import inspect
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing

FOLDER = Path(__file__).with_name("inventories")
COLLECTIVE = {
    "numpy.random.Generator": "reference/random/generator.html",
    "numpy.random.SeedSequence": "reference/random/bit_generators/generated/numpy.random.SeedSequence.html",
    "numpy.typing.ArrayLike": "reference/typing.html",
    "numpy.typing.NDArray": "reference/typing.html",
    "numpy.typing.DTypeLike": "reference/typing.html",
    **{f"numpy.{name}": "reference/arrays.scalars.html" for name in ("float64", "float32", "int64", "bool", "str_")},
}


def names() -> dict[str, tuple[str, str]]:
    """Every public class and function of NumPy: its kind, and the page that describes it."""
    found: dict[str, tuple[str, str]] = {}

    def add(module: ModuleType, prefix: str) -> None:
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name, None)
            if inspect.isclass(thing) or callable(thing):
                kind = "class" if inspect.isclass(thing) else "function"
                found[f"{prefix}.{name}"] = (kind, f"reference/generated/{prefix}.{name}.html")

    add(np, "numpy")
    add(np.linalg, "numpy.linalg")
    for name, page in COLLECTIVE.items():
        found[name] = ("class" if name[-4:] != "Like" and name[-5:] != "Array" else "data", page)
    return found


def write() -> None:
    """Write the inventory in the format of Sphinx, version 2."""
    lines = "".join(f"{name} py:{kind} 1 {page}#$ -\n" for name, (kind, page) in sorted(names().items()))
    header = f"# Sphinx inventory version 2\n# Project: NumPy\n# Version: {np.__version__}\n"
    header += "# The remainder of this file is compressed using zlib.\n"
    (FOLDER / "numpy.inv").write_bytes(header.encode() + zlib.compress(lines.encode(), 9))


if __name__ == "__main__":
    write()

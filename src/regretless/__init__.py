"""regretless: online learning that is provably almost as good as the best model chosen in hindsight."""

import ast as _ast
from importlib import import_module as _import_module
from pathlib import Path as _Path

__version__ = "0.1.0"

# Public name -> module, read from the stub that type checkers read. Imported on first use: NumPy, Numba and
# scikit-learn take seconds that `import regretless` need not.
_HOME = {
    name.name: node.module
    for node in _ast.parse(_Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, _ast.ImportFrom)
    for name in node.names
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'regretless' has no attribute {name!r}")
    with _import_module("regretless.core.first_import").of_a_public_name():
        try:
            value = _import_module(f"{_HOME[name]}.{name}")  # a module, such as regretless.bounds
        except ModuleNotFoundError:
            value = getattr(_import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

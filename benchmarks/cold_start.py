"""(d) Cold start: the time of a new process until its first forecast, compared with River and scikit-learn.

Each script runs in its own process, in turns; CPU seconds (user and system, all threads) and wall seconds are those of
the whole process; the bare interpreter is the first line. The first forecast is that of a learner that has learned two
rows. regretless caches compiled code on disk: the full run starts with an empty folder, so that the first process
compiles and the others load everything; the number of kernels they compile is shown.

scikit-learn imports pandas if it is installed. `pip install regretless` does not install it, so it is hidden from all
but the lines that name it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import regretless
from benchmarks.page import goal, table
from benchmarks.timing import progress

TITLE = "Cold start"

WITHOUT_PANDAS = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
"""
PLAY = """
import numpy as np
from numba.core import event
from regretless import {name}
with event.install_recorder("numba:compile") as compiled:
    learner = {name}()
    learner.partial_fit(np.eye(2), [0, 1])
    learner.predict_proba(np.eye(2))
print(len(compiled.buffer) // 2)
"""
SCRIPTS = {
    "Python alone": "",
    "import numpy": "import numpy",
    "import regretless": "import regretless",
    "AIOLI, first forecast": WITHOUT_PANDAS + PLAY.format(name="AIOLI"),
    "AIOLI, first forecast, with pandas": PLAY.format(name="AIOLI"),
    "OnlineLogisticRegression, first forecast": WITHOUT_PANDAS + PLAY.format(name="OnlineLogisticRegression"),
    "import River's linear_model": "from river import linear_model",
    "River LogisticRegression, first forecast": """
from river import linear_model
model = linear_model.LogisticRegression()
model.learn_one({0: 1.0, 1: 0.0}, False)
model.learn_one({0: 0.0, 1: 1.0}, True)
model.predict_proba_one({0: 1.0, 1: 0.0})
""",
    "import scikit-learn's SGDClassifier": WITHOUT_PANDAS + "from sklearn.linear_model import SGDClassifier",
    "scikit-learn SGDClassifier, first forecast": WITHOUT_PANDAS
    + """
import numpy as np
from sklearn.linear_model import SGDClassifier
model = SGDClassifier(loss="log_loss")
model.partial_fit(np.eye(2), [0, 1], classes=[0, 1])
model.predict_proba(np.eye(2))
""",
}
IMPORT, FIRST = 0.3, 1.0  # goals in CPU seconds for `import regretless`, and until the first forecast


class Start(NamedTuple):
    cpu: float
    wall: float
    said: str


def start(script: str, cache: Path | None) -> Start:
    """Run a script in its own process."""
    package = str(Path(regretless.__file__).parent.parent)
    found = os.environ.get("PYTHONPATH")
    env = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{found}" if found else package}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is not compiled to bytecode at every start
    if cache is not None:
        env["REGRETLESS_CACHE_DIR"] = str(cache)
    before, started = os.times(), time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=600)
    wall, after = time.perf_counter() - started, os.times()
    if done.returncode:
        raise RuntimeError(f"a cold-start script failed:\n{done.stderr}")
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return Start(cpu, wall, done.stdout.strip())


def measure(quick: bool) -> dict[str, Any]:
    """All numbers of the section; a quick run uses the user's cache of compiled code."""
    absent = [name for name in ("River", "pandas") if not find_spec(name.lower())]
    scripts = {name: script for name, script in SCRIPTS.items() if not any(each in name for each in absent)}
    if quick:
        scripts.pop("OnlineLogisticRegression, first forecast")
    for name in absent:
        progress(f"cold start: {name} is not installed, skipped")
    lines: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        cache = None if quick else Path(folder)
        found: dict[str, list[Start]] = {name: [] for name in scripts}
        for name, script in scripts.items():  # so that all files are in the disk cache, and kernels are compiled
            progress(f"cold start: {name}, the first time")
            one = start(script, cache)
            lines[name] = {"first_cpu_s": one.cpu, "first_compiled": int(one.said) if one.said else None}
        for i in range(2 if quick else 5):
            progress(f"cold start: round {i + 1}")
            for name, script in scripts.items():
                found[name].append(start(script, cache))
    for name, starts in found.items():
        lines[name] |= {
            "cpu_s": min(each.cpu for each in starts),
            "cpu_s_median": statistics.median(each.cpu for each in starts),
            "wall_s": min(each.wall for each in starts),
            "wall_s_median": statistics.median(each.wall for each in starts),
            "compiled": max(int(each.said) for each in starts) if starts[0].said else None,
            "repeats": len(starts),
        }
    return {"lines": lines, "empty_folder": not quick, "missing": absent, "goals": goals(lines)}


def goals(lines: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    found = [goal("`import regretless`, CPU", lines["import regretless"]["cpu_s"], IMPORT, False, "s")]
    for name, line in lines.items():
        if line["compiled"] is not None and "pandas" not in name:
            found.append(goal(f"{name} from cached code, CPU", line["cpu_s"], FIRST, False, "s"))
            found.append(goal(f"{name}, kernels a second process compiles", line["compiled"], 0, False, ""))
    return found


def markdown(result: dict[str, Any]) -> list[str]:
    """The section as Markdown."""
    body = []
    for name, line in result["lines"].items():
        cells = [name, f"{line['cpu_s']:.2f} ({line['cpu_s_median']:.2f})"]
        cells.append(f"{line['wall_s']:.2f} ({line['wall_s_median']:.2f})")
        kernels = line["compiled"] is not None
        cells.append(f"{line['first_cpu_s']:.1f}, {line['first_compiled']} kernels" if kernels else "")
        body.append([*cells, str(line["compiled"]) if kernels else ""])
    heads = ["a process", "CPU s (median)", "wall s (median)", "the very first, CPU s", "compiled later"]
    return [
        "Whole processes, including the interpreter, smallest and median of the repeats, in turns. Compiled code is",
        "cached on disk: the very first process compiles it, later ones load it. scikit-learn imports pandas if it is",
        "installed (regretless does not install it): it is hidden except in the line that says so, and for River.",
        *(f"{name} was not installed." for name in result["missing"]),
        "",
        *table(heads, body),
    ]

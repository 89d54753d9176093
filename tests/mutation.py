"""A sampled mutation test: small faults put into the code, one at a time, and whether the tests notice.

    python tests/mutation.py prepare --tree . --out mutants   # draws the faults; needs the extra `mutation`
    python tests/mutation.py run mutants                      # runs the tests on each; needs NumPy, SciPy,
                                                              # scikit-learn and Numba, and no network

`prepare` asks Cosmic Ray for every fault it can put into `TARGETS`, draws `SAMPLE` of the places by a hash of
the code around each (so two versions of the project share the faults of the code they share), and writes a folder with
the faults, a copy of the sources and tests, and pure-Python wheels of pytest and Hypothesis. `run` works in that folder
alone, on another machine too:

1. It runs every selected test on the code as it is, and records which functions of `TARGETS` each test calls. Tests
   that fail, are skipped, or take longer than `LONGEST` are left out. Of a test function at most `CASES` cases run.
2. It runs the others once more on a second copy of the code, and measures their cost. Those that fail now are left out.
3. For each fault it runs the tests that call the faulty function, one case per test function first, the cheapest first,
   up to `BUDGET` seconds of them. A fault is killed if a test fails or does not end.

Kernels run as plain Python (NUMBA_DISABLE_JIT=1): compiling them again for each fault would take most of the time.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import hashlib
import importlib
import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

# ---------------------------------------------------------------------- what is tested, and by which tests

TARGETS = ["core/**/*.py", "learners/second_order/*.py"]  # below src/<package>
NOT_TARGETS = [
    "core/kernels/jit.py",  # compilation is off here
    "core/kernels/compile_cache.py",
    "core/kernels/linked.py",
    "core/kernels/compiling.py",
    "core/types.py",
    "core/numbers/links.py",  # tested with the losses
]
TESTS = [
    "test_reference.py",
    "test_aggregating.py",
    "test_certificate.py",
    "test_checks.py",
    "test_checks_extremes.py",
    "test_checks_fit.py",
    "test_checks_labels.py",
    "test_checks_matrix.py",
    "test_checks_others.py",
    "test_checks_refusals.py",
    "test_checks_regret.py",
    "test_checks_sparse.py",
    "test_curvature.py",
    "test_descent.py",
    "test_effects.py",
    "test_errata.py",
    "test_expectation.py",
    "test_exponentials.py",
    "test_extremes.py",
    "test_forecasts.py",
    "test_forms.py",
    "test_general_gaf.py",
    "test_interrupts.py",
    "test_kernel_gaf.py",
    "test_keyed.py",
    "test_keys.py",
    "test_match.py",
    "test_memory.py",
    "test_merging.py",
    "test_model_files.py",
    "test_one_row.py",
    "test_panels.py",
    "test_products.py",
    "test_projection.py",
    "test_regret.py",
    "test_rounding.py",
    "test_sklearn.py",
    "test_tickets.py",
]
LEARNERS = {"AIOLI", "FOLKLORE", "GAF", "ONS", "VovkAzouryWarmuth"}  # of cases named after a learner, only these run

MARKS = "not services and not pages and not slow"  # those of a plain `pytest`
SAMPLE = 240  # faults
SEED = 0
CASES = 24  # at most so many cases per test function
LONGEST = 5.0  # seconds of CPU that a test may take, traced
BUDGET = 45.0  # seconds of tests per fault
PATIENCE = (10.0, 5.0)  # a test of cost c that takes longer than 10 c + 5 s does not end
MEMORY = 8 << 30  # bytes of address space per process

# ---------------------------------------------------------------------- faults that change nothing or break everything

ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
BITWISE = {"BitOr", "BitAnd", "BitXor", "LShift", "RShift"}
ORDER = {"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"}
IDENTITY = {"Is", "IsNot"}
SPEED_ONLY = {
    "cache",
    "lru_cache",
    "kernel",
    "shared_kernel",
    "inlined_kernel",
    "merged_kernel",
    "apart_kernel",
    "apart_summing_kernel",
    "lanes_kernel",
    "summing_kernel",
    "exact_kernel",
    "overload",
}
WHEELS = ["pytest", "pluggy", "iniconfig", "packaging", "hypothesis", "sortedcontainers", "pygments"]
OPTIONAL = ["pandas", "polars", "pyarrow"]  # tests that use one that is not installed are skipped
ANSWER = "MUTATION_ANSWER"
PLAN = "MUTATION_PLAN"


# ---------------------------------------------------------------------- prepare


def spans_without_effect(tree: ast.Module) -> list[ast.AST]:
    """Types, texts with values in them, `__all__`, `if TYPE_CHECKING`, and decorators that only save time."""
    found: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.returns)
            found += [each for each in node.decorator_list if ast.unparse(each).split("(")[0] in SPEED_ONLY]
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg == "stacklevel"):
            found.append(node)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            found += node.args[1:]
        if isinstance(node, ast.Assign) and any(ast.unparse(each) == "__all__" for each in node.targets):
            found.append(node)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            found.append(node)
    return [each for each in found if each is not None]


class Source:
    """A module's text, and what lies where in it. Positions are (line, column) with lines from 1, in characters."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.splitlines(keepends=True)
        self.tree = ast.parse(self.text)
        self.without_effect = [self.span(node) for node in spans_without_effect(self.tree)]

    def span(self, node: Any) -> tuple[tuple[int, int], tuple[int, int]]:
        def place(line: int, column: int) -> tuple[int, int]:
            return line, len(self.lines[line - 1].encode()[:column].decode())

        return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)

    def matters(self, start: tuple[int, int], stop: tuple[int, int]) -> bool:
        inside = any(first <= start and stop <= last for first, last in self.without_effect)
        decorator = self.lines[start[0] - 1][: start[1] + 1].strip() == "@"  # its node starts one column later
        return not inside and not (decorator and not self.matters((start[0], start[1] + 1), (start[0], start[1] + 2)))

    def functions(self, at: tuple[int, int]) -> list[tuple[str, int]]:
        """Names and first lines (as in code objects) of the functions around this position, outer ones first."""
        found, name = [], ""
        level: list[Any] = [self.tree]
        while level:
            node = level.pop()
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    if hasattr(child, "lineno"):
                        start, stop = self.span(child)
                        if start <= at < stop:
                            level.append(child)
                    continue
                if self.span(child.body[0])[0] <= at < self.span(child)[1]:
                    name = f"{name}.{child.name}".lstrip(".")
                    if not isinstance(child, ast.ClassDef):
                        found.append((name, min([child.lineno, *(each.lineno for each in child.decorator_list)])))
                    level.append(child)
        return found


def is_left_out(operator: str) -> bool:
    """Whether an operator makes a TypeError of most expressions (a - b to a << b), or compares numbers by `is`."""
    if "Variable" in operator:  # it wants arguments
        return True
    kind, _, pair = operator.partition("_")
    kinds = {"core/ReplaceBinaryOperator": (ARITHMETIC, BITWISE), "core/ReplaceComparisonOperator": (ORDER, IDENTITY)}
    return kind in kinds and not any(set(pair.split("_")) <= alike for alike in kinds[kind])


def digest(*parts: Any) -> str:
    return hashlib.sha256("\0".join(map(str, (SEED, *parts))).encode()).hexdigest()


def faults_of(path: Path, name: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """For every place in a module where a fault can be put: its hash, and the faults."""
    import parso.python.tree  # noqa: F401  (before Cosmic Ray, which imports it half-way)
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    source = Source(path)
    nodes = list(ast_nodes(get_ast(source.text)))
    places: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for operator_name in sorted(operator_names()):
        if is_left_out(operator_name):
            continue
        operator, occurrence = get_operator(operator_name)(), 0
        for node in nodes:
            for start, stop in operator.mutation_positions(node):
                if source.matters(start, stop):
                    fault = {"module": name, "operator": operator_name.removeprefix("core/"), "occurrence": occurrence}
                    places[start, stop].append(fault | {"line": start[0]})
                occurrence += 1
    seen: Counter[str] = Counter()
    for start, stop in sorted(places):
        functions = source.functions(start)
        where = functions[-1][0] if functions else ""
        line = source.lines[start[0] - 1]
        around = [each.strip() for each in source.lines[max(0, start[0] - 2) : start[0] + 1]]
        key = digest(where, *around, start[1] - (len(line) - len(line.lstrip())), stop[0] - start[0])
        seen[key] += 1
        for fault in places[start, stop]:
            fault |= {"function": where, "calls": [first for _, first in functions]}
        yield digest(key, seen[key]), places[start, stop]


def same_lines(one: list[str], other: list[str]) -> int:
    """How many lines two texts have in common at their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


def put(fault: dict[str, Any], path: Path) -> dict[str, Any] | None:
    """The fault with its diff and the lines that it changes; None if it changes nothing or is no Python."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    text = path.read_text(encoding="utf-8")
    changed = mutate_code(text, get_operator("core/" + fault["operator"])(), fault["occurrence"])
    try:
        if changed is None or ast.dump(ast.parse(changed)) == ast.dump(ast.parse(text)):
            return None
    except SyntaxError:
        return None
    old, new = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    first = same_lines(old, new)
    last = same_lines(old[first:][::-1], new[first:][::-1])
    diff = list(difflib.unified_diff(old, new, n=0))[3:]
    edit = {"first": first, "last": len(old) - last, "lines": new[first : len(new) - last]}
    return fault | {"diff": "".join(diff), "edit": edit, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def draw(
    package: Path, targets: list[str], exclude: list[str], size: int
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The faults, in the order of their hashes (so that the first of them are a sample too), and places per module."""
    modules = sorted({path for pattern in targets for path in package.glob(pattern)})
    modules = [path for path in modules if not any(path.match(pattern) for pattern in exclude)]
    places, counts = [], {}
    for path in modules:
        name = path.relative_to(package).as_posix()
        found = list(faults_of(path, name))
        counts[name] = len(found)
        places += [(key, path, faults) for key, faults in found]
    chosen: list[dict[str, Any]] = []
    for key, path, faults in sorted(places, key=lambda place: (place[0], place[1].name)):
        order = sorted(
            faults, key=lambda fault: digest(key, fault["operator"], fault["occurrence"] - faults[0]["occurrence"])
        )
        fault = next((each for each in (put(fault, path) for fault in order) if each), None)
        if fault:
            chosen.append({"id": len(chosen)} | fault)
        if len(chosen) == size:
            break
    return chosen, counts


def prepare(args: argparse.Namespace) -> None:
    [package] = [path.parent for path in (args.tree / "src").glob("*/__init__.py")]
    out: Path = args.out
    if out.exists():
        shutil.rmtree(out)
    without = shutil.ignore_patterns("__pycache__", ".*", "fuzz")
    for folder in ("src", "tests", "benchmarks"):
        shutil.copytree(args.tree / folder, out / "tree" / folder, ignore=without)
    shutil.copy(args.tree / "pyproject.toml", out / "tree")
    shutil.copy(__file__, out / "mutation.py")
    faults, places = draw(package, args.targets, args.exclude, args.sample)
    found = {"package": package.name, "seed": SEED, "places": places, "mutants": faults}
    (out / "mutants.json").write_text(json.dumps(found, indent=1))
    if args.wheels:
        shutil.copytree(args.wheels, out / "site", ignore=shutil.ignore_patterns("__pycache__"))
    else:
        pure = ["--only-binary", ":all:", "--platform", "any", "--python-version", "3.12", "--no-deps", "--no-compile"]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--target", out / "site", *pure, *WHEELS], check=True
        )
    print(f"{len(faults)} of {sum(places.values())} places in {len(places)} modules: {out}")


# ---------------------------------------------------------------------- inside a pytest process (a plugin)


class Missing(ModuleType):
    """Stands for a package that is not installed, where a test file imports it: tests that use it are skipped."""

    collecting = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.collecting:
            return Missing(f"{self.__name__}()")
        import pytest

        pytest.skip(f"{self.__name__} is not installed")


class Session:
    """Runs the planned tests in the planned order with a limit of time each, and writes down how each ended."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.package = plan["package"]
        self.targets = {str(Path(plan["source"], name)): name for name in plan["modules"]}
        self.calls: set[str] = set()
        self.answer: dict[str, Any] = {"tests": {}, "imported": [], "failed": None}

    # ------------------------------------------------------------------ which functions are called

    def trace(self, frame: FrameType, event: str, arg: Any) -> None:
        module = self.targets.get(frame.f_code.co_filename)
        if module is not None:
            self.calls.add(f"{module}:{frame.f_code.co_firstlineno}")

    def watch(self) -> None:
        if self.plan["trace"]:
            self.calls.clear()
            sys.settrace(self.trace)
            threading.settrace(self.trace)

    def unwatch(self) -> list[str]:
        if self.plan["trace"]:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
        return sorted(self.calls)

    def forget(self) -> None:
        """Empty the caches of the package's functions: each test shall be seen to call what it needs."""
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == self.package:
                for value in list(vars(module).values()):
                    if callable(getattr(value, "cache_clear", None)):
                        value.cache_clear()

    # ------------------------------------------------------------------ hooks

    def pytest_collection(self, session: Any) -> None:
        for name in ("numpy", "scipy.stats", "sklearn.utils", "numba", "joblib"):
            importlib.import_module(name)  # with all that they find missing, before stand-ins for it are there
        self.absent = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
        sys.modules |= {name: Missing(name) for name in self.absent}
        self.watch()

    def pytest_collection_modifyitems(self, session: Any, config: Any, items: list[Any]) -> None:
        self.answer["imported"] = self.unwatch()
        for name in self.absent:
            sys.modules.pop(name, None)
        Missing.collecting = False
        found = Path(sys.modules[self.package].__file__ or "")
        assert found.is_relative_to(self.plan["source"]), f"{found} is not the code under test"
        if self.plan["order"] is None:
            part, parts = self.plan["shard"]
            names = selected([item.nodeid for item in items], self.plan["cases"])[part::parts]
            items[:] = [item for item in items if item.nodeid in names]
            return
        order = {nodeid: i for i, nodeid in enumerate(self.plan["order"])}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])
        assert len(items) == len(order), f"{len(order) - len(items)} of the planned tests were not found"

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.plan["trace"]:
            self.forget()
        limit = self.plan["limits"].get(nodeid, self.plan["limit"])
        signal.signal(signal.SIGVTALRM, self.stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, limit, limit)
        self.outcomes: list[str] = []
        self.began = sum(os.times()[:4])
        self.watch()

    def stop(self, signum: int, frame: Any) -> None:
        import pytest

        pytest.fail("the test took too long")

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.outcomes.append("too slow" if "the test took too long" in str(report.longrepr) else report.outcome)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        calls = self.unwatch()
        outcome = next((each for each in self.outcomes if each != "passed"), "passed")
        cost = sum(os.times()[:4]) - self.began
        self.answer["tests"][nodeid] = {"outcome": outcome, "cost": round(cost, 4), "calls": calls}
        if outcome in ("failed", "too slow") and self.answer["failed"] is None:
            self.answer["failed"] = {"test": nodeid, "outcome": outcome}

    def pytest_sessionfinish(self) -> None:
        Path(os.environ[ANSWER]).write_text(json.dumps(self.answer))


def pytest_configure(config: Any) -> None:
    """The entry of the plugin."""
    if PLAN in os.environ:
        config.pluginmanager.register(Session(json.loads(Path(os.environ[PLAN]).read_text())))


def selected(nodeids: list[str], most: int) -> list[str]:
    """Cases of `LEARNERS` or of no learner, at most so many per test function, drawn by their hash."""
    cases: defaultdict[str, list[str]] = defaultdict(list)
    for nodeid in filter(concerns, nodeids):
        cases[nodeid.partition("[")[0]].append(nodeid)
    return [nodeid for each in cases.values() for nodeid in sorted(each, key=digest)[:most]]


def concerns(nodeid: str) -> bool:
    """Whether a case is of no learner in particular, or of one of `LEARNERS`."""
    _, _, case = nodeid.partition("[")
    learner = re.search(r"(\w+)\(", case)
    return learner is None or learner[1] in LEARNERS


# ---------------------------------------------------------------------- run


class Runner:
    """Runs pytest processes on copies of the code."""

    def __init__(self, folder: Path, marks: str) -> None:
        self.folder = folder.resolve()
        self.marks = marks
        self.tree = self.folder / "tree"
        self.work = self.folder / "work"
        self.given = json.loads((self.folder / "mutants.json").read_text())
        self.package: str = self.given["package"]
        self.work.mkdir(exist_ok=True)
        (self.work / "plugin").mkdir(exist_ok=True)
        shutil.copy(__file__, self.work / "plugin" / "mutation_plugin.py")
        self.files = [name for name in TESTS if (self.tree / "tests" / name).exists()]
        if missing := sorted(set(TESTS) - set(self.files)):
            print("no such test files: " + ", ".join(missing))

    def copy(self, name: str) -> Path:
        """A copy of the sources with the compiled modules beside them, which stay valid: copies keep their times."""
        home = self.work / name
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(self.tree / "src", home / "src")
        (home / "cache").mkdir(mode=0o700)
        return home

    def pytest(self, home: Path, plan: dict[str, Any], files: list[str], seconds: float | None) -> dict[str, Any]:
        """What the plugin wrote, with the exit status (None: stopped after `seconds`) and the end of the output."""
        plan = {
            "order": None,
            "shard": [0, 1],
            "trace": False,
            "cases": 0,
            "stop": False,
            "limit": LONGEST,
            "limits": {},
        } | plan
        plan |= {
            "package": self.package,
            "source": str(home / "src" / self.package),
            "modules": list(self.given["places"]),
        }
        (home / "plan.json").write_text(json.dumps(plan))
        site = [str(self.folder / "site")] if (self.folder / "site").exists() else []
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(home / "src"), str(self.work / "plugin"), *site]),
            PLAN: str(home / "plan.json"),
            ANSWER: str(home / "answer.json"),
            f"{self.package.upper()}_CACHE_DIR": str(home / "cache"),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
            "TMPDIR": str(home),
            "NUMBA_DISABLE_JIT": "1",
            "PYTHONHASHSEED": "0",
        }
        env |= {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}
        settings = [
            "-p",
            "mutation_plugin",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
            "-o",
            "filterwarnings=",  # plain Python warns of overflow, which kernels do not
            "-m",
            self.marks,
            "-q",
            "--tb=line",
        ]
        if plan["stop"]:
            settings.append("-x")
        log = home / "log.txt"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *settings, *(f"tests/{name}" for name in files)],
                cwd=self.tree,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
            )
            try:
                status: int | None = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            with contextlib.suppress(ProcessLookupError):  # it, and what it started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        answer = home / "answer.json"
        found = json.loads(answer.read_text()) if answer.exists() else {"tests": {}, "imported": [], "failed": None}
        return found | {"status": status, "log": log.read_text(errors="replace")[-1500:]}

    # ------------------------------------------------------------------ the tests on the code as it is

    def baseline(self, jobs: int, cases: int) -> dict[str, Any]:
        """Tests that pass twice: their cost and their calls. Those left out, and why. Kept for a later run here."""
        kept = self.work / "baseline.json"
        stamp = [platform.node(), sys.version, LONGEST, cases, TESTS]
        if kept.exists() and (found := json.loads(kept.read_text()))["stamp"] == stamp:
            return found
        shards = [{"shard": [i, jobs], "cases": cases, "trace": True} for i in range(jobs)]
        first = self.shards("traced", shards, self.files)
        tests = {nodeid: test for answer in first for nodeid, test in answer["tests"].items()}
        left_out = {nodeid: test["outcome"] for nodeid, test in tests.items() if test["outcome"] != "passed"}
        tests = {nodeid: test for nodeid, test in tests.items() if nodeid not in left_out}
        order = sorted(tests, key=digest)
        plans = [{"order": order[i::jobs], "limit": 10 * LONGEST} for i in range(jobs)]
        plain = {}
        for answer in self.shards("plain", plans, self.files):
            plain |= answer["tests"]
        left_out |= {nodeid: "unstable" for nodeid in order if plain[nodeid]["outcome"] != "passed"}
        order = [nodeid for nodeid in order if nodeid not in left_out]
        imported = sorted({call for answer in first for call in answer["imported"]})
        found = {
            "stamp": stamp,
            "imported": imported,
            "left_out": left_out,
            "tests": {nodeid: {"cost": plain[nodeid]["cost"], "calls": tests[nodeid]["calls"]} for nodeid in order},
        }
        kept.write_text(json.dumps(found))
        return found

    def shards(self, name: str, plans: list[dict[str, Any]], files: list[str]) -> list[dict[str, Any]]:
        homes = [self.copy(f"{name}-{i}") for i in range(len(plans))]
        with ThreadPoolExecutor(len(plans)) as pool:
            answers = list(pool.map(lambda pair: self.pytest(*pair, files, None), zip(homes, plans, strict=True)))
        for answer in answers:
            if not answer["tests"]:
                raise SystemExit(f"no test ran on the code as it is (status {answer['status']}):\n{answer['log']}")
        for home in homes:
            shutil.rmtree(home)
        return answers

    # ------------------------------------------------------------------ faults

    def tests_for(self, fault: dict[str, Any], baseline: dict[str, Any]) -> list[str]:
        """The tests that call the function, a case of each test function first, within `BUDGET`.

        All tests, if it runs when the package is imported.
        """
        calls = {f"{fault['module']}:{line}" for line in fault["calls"]}
        everywhere = not calls or bool(calls & set(baseline["imported"]))
        tests = baseline["tests"]
        callers = {nodeid for nodeid, test in tests.items() if calls & set(test["calls"])}
        able = list(tests) if everywhere else callers
        cases: Counter[str] = Counter()
        rounds: dict[str, int] = {}
        for nodeid in sorted(able, key=digest):
            function = nodeid.partition("[")[0]
            rounds[nodeid] = cases[function]
            cases[function] += 1
        chosen, spent = [], 0.0
        for nodeid in sorted(able, key=lambda each: (each not in callers, rounds[each], tests[each]["cost"])):
            if spent + tests[nodeid]["cost"] <= BUDGET:
                chosen.append(nodeid)
                spent += tests[nodeid]["cost"]
        return chosen

    def put(self, fault: dict[str, Any], home: Path) -> None:
        path = home / "src" / self.package / fault["module"]
        text = path.read_text(encoding="utf-8")
        if hashlib.sha256(text.encode()).hexdigest() != fault["sha256"]:
            raise SystemExit(f"{path} is not the file that the faults were drawn for: run `prepare` again.")
        lines, edit = text.splitlines(keepends=True), fault["edit"]
        lines[edit["first"] : edit["last"]] = edit["lines"]
        path.write_text("".join(lines), encoding="utf-8")
        for old in path.parent.glob(f"__pycache__/{path.stem}.*"):
            old.unlink()

    def judge(self, fault: dict[str, Any], baseline: dict[str, Any]) -> dict[str, Any]:
        """The fault with what the tests made of it."""
        began = time.monotonic()
        order = self.tests_for(fault, baseline)
        kept = {name: value for name, value in fault.items() if name not in ("edit", "sha256", "calls")}
        if not order:
            return kept | {"result": "survived", "why": "no test calls the function", "tests": 0, "seconds": 0.0}
        costs = {nodeid: baseline["tests"][nodeid]["cost"] for nodeid in order}
        times, more = PATIENCE
        home = self.copy(f"fault-{fault['id']}")
        if fault.get("edit"):
            self.put(fault, home)
        files = sorted({Path(nodeid.partition("::")[0]).name for nodeid in order}, key=TESTS.index)
        limits = {nodeid: times * cost + more for nodeid, cost in costs.items()}
        answer = self.pytest(
            home, {"order": order, "limits": limits, "stop": True}, files, times * sum(costs.values()) / 2 + 60.0
        )
        status, failed = answer["status"], answer["failed"]
        if status == 0 and len(answer["tests"]) == len(order):
            result, why = "survived", ""
        elif failed:
            result, why = "killed", f"{failed['outcome']}: {failed['test']}"
        elif status is None:
            result, why = "killed", "did not end"
        elif status in (1, 2) or status < 0:
            result, why = "killed", f"status {status}: {answer['log'][-300:]}"
        else:
            result, why = "error", f"status {status}: {answer['log']}"
        shutil.rmtree(home, ignore_errors=True)
        seconds = round(time.monotonic() - began, 1)
        return kept | {
            "result": result,
            "why": why,
            "tests": len(order),
            "cost": sum(costs.values()),
            "seconds": seconds,
        }


def summary(found: list[dict[str, Any]], places: dict[str, int]) -> dict[str, Any]:
    by_module: dict[str, Counter[str]] = {name: Counter() for name in places}
    for fault in found:
        by_module[fault["module"]][fault["result"]] += 1
    total = Counter(fault["result"] for fault in found)
    return {
        "killed": total["killed"],
        "survived": total["survived"],
        "errors": total["error"],
        "total": len(found),
        "share": round(total["killed"] / max(1, total["killed"] + total["survived"]), 4),
        "by module": {name: f"{count['killed']}/{count.total()}" for name, count in by_module.items() if count},
    }


def run(args: argparse.Namespace) -> None:
    began = time.monotonic()
    runner = Runner(args.folder, args.marks)
    baseline = runner.baseline(args.jobs, args.cases)
    for folder in args.beside:
        theirs = Runner(folder, args.marks).baseline(args.jobs, args.cases)["left_out"]
        for nodeid in [each for each in baseline["tests"] if theirs.get(each) in ("too slow", "unstable")]:
            baseline["left_out"][nodeid] = theirs[nodeid] + " beside"
            del baseline["tests"][nodeid]
    cost = sum(test["cost"] for test in baseline["tests"].values())
    print(
        f"{len(baseline['tests'])} tests ({cost:.0f} s) pass twice on the code as it is, "
        f"{len(baseline['left_out'])} are left out: {dict(Counter(baseline['left_out'].values()))}; "
        f"{time.monotonic() - began:.0f} s",
        flush=True,
    )
    control: dict[str, Any] = {"id": "control", "module": "", "calls": [], "line": 0, "diff": "", "operator": "none"}
    faults = runner.given["mutants"]
    if args.only:
        faults = [fault for fault in faults if fault["id"] in args.only]
    found: list[dict[str, Any]] = []
    writing = threading.Lock()

    def one(fault: dict[str, Any]) -> None:
        if fault is control:  # the code as it is, treated like the others
            control.update(runner.judge(control, baseline))
            return
        if args.seconds and time.monotonic() - began > args.seconds:
            return
        result = runner.judge(fault, baseline)
        with writing:
            found.append(result)
            found.sort(key=lambda each: each["id"])
            write()
            print(
                f"{result['id']:>4} {result['result']:<9}{result['seconds']:>6} s  {result['module']}:{result['line']}",
                flush=True,
            )

    def write() -> None:
        versions = {name: importlib.import_module(name).__version__ for name in ("numpy", "scipy", "sklearn", "numba")}
        report = {
            "package": runner.package,
            "summary": summary(found, runner.given["places"]),
            "drawn": len(faults),
            "places": runner.given["places"],
            "python": sys.version,
            "versions": versions,
            "seconds": round(time.monotonic() - began, 1),
            "tests": len(baseline["tests"]),
            "left out": baseline["left_out"],
            "control": control,
            "survivors": [fault for fault in found if fault["result"] != "killed"],
            "mutants": found,
        }
        args.result.write_text(json.dumps(report, indent=1))

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, [control, *faults]))
    write()
    if control["result"] != "survived":
        raise SystemExit(f"the tests do not pass on the code as it is: {control['why']}")
    for fault in found:
        if fault["result"] != "killed":
            print(
                f"\n{fault['result']}: {fault['module']}:{fault['line']} ({fault['operator']})\n{fault['diff']}", end=""
            )
    print("\n" + json.dumps(summary(found, runner.given["places"]), indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    first = verbs.add_parser("prepare", help="draw the faults and write the folder for `run`")
    first.add_argument("--tree", type=Path, default=Path("."), help="the root of the repository")
    first.add_argument("--out", type=Path, required=True, help="a folder, which is replaced")
    first.add_argument("--targets", nargs="+", default=TARGETS, help="modules, below the package")
    first.add_argument("--exclude", nargs="+", default=NOT_TARGETS, help="modules among these to leave out")
    first.add_argument("--sample", type=int, default=SAMPLE, help="how many faults")
    first.add_argument("--wheels", type=Path, help="a folder with pytest and Hypothesis; otherwise pip fetches them")
    first.set_defaults(verb=prepare)
    second = verbs.add_parser("run", help="run the tests on each fault")
    second.add_argument("folder", type=Path, help="what `prepare` wrote")
    second.add_argument("--result", type=Path, default=Path("mutation.json"), help="the report")
    second.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes side by side")
    second.add_argument("--seconds", type=float, help="start no fault after this time: the first are a sample too")
    second.add_argument("--cases", type=int, default=CASES, help="at most so many cases per test function")
    second.add_argument(
        "--beside",
        type=Path,
        nargs="+",
        default=[],
        help="folders of other versions to compare with: tests too slow or unstable on them are left out here too",
    )
    second.add_argument("--marks", default=MARKS, help="which tests: as for `pytest -m`")
    second.add_argument("--only", type=int, nargs="+", help="the numbers of the faults to run")
    second.set_defaults(verb=run)
    args = parser.parse_args()
    args.verb(args)


if __name__ == "__main__":
    main()

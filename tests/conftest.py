"""Settings of the test run, and the compilation of the kernels that most tests use."""

from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side: threads would wait for each other

import pytest
from hypothesis import settings

gc.set_threshold(1_000_000, 20, 100)  # compilation makes much garbage: collected rarely, it takes a tenth less time

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: Ctrl-C could not be tested
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("regretless", deadline=None, derandomize=True, database=None)
settings.load_profile("regretless")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """All tests of the service have one marker. Without it, what they import, which takes a second, is not needed."""
    left_out = "not services" in config.option.markexpr and collection_path.name == "serve"
    return True if left_out and collection_path.is_dir() else None


def pytest_collection_finish() -> None:
    """The tests themselves are no garbage, and are not looked at again."""
    gc.collect()
    gc.freeze()


SLOW_TO_COMPILE = (  # the slowest first, so that no worker has to wait for another at the end
    "OnlineLogisticRegression",
    "AIOLI",
    "FOLKLORE",
    "GAF",
    "MirrorDescent",
    "GeneralGAF",
    "ONS",
    "AggregatingForecaster",
    "OnlineBoosting",
    "FTRL",
    "KernelGAF",
)


@pytest.fixture(scope="session", autouse=True)
def compiled_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Before their first tests, the workers of pytest-xdist share the compilation of the learners that tests play.

    Most files play every learner, so that otherwise all workers would compile the same kernels at the same time. A
    worker that finds nothing left to compile waits for the others.
    """
    if not hasattr(request.config, "workerinput"):
        return
    from learners import LEARNERS, compile_for

    parameters = (item.callspec.params for item in request.session.items if hasattr(item, "callspec"))
    asked = {type(getattr(each, "learner", None)) for given in parameters for each in given.values()}
    kinds = [kind for kind in dict.fromkeys(type(entry.learner) for entry in LEARNERS) if kind in asked]
    order = {name: place for place, name in enumerate(SLOW_TO_COMPILE)}
    kinds.sort(
        key=lambda kind: (order.get(kind.__name__, len(order)), bool(kind.holds))
    )  # ensembles after their members
    claims = tmp_path_factory.getbasetemp().parent / "compiled"
    claims.mkdir(exist_ok=True)
    for kind in kinds:
        if is_first(claims / kind.__name__):
            try:
                compile_for(kind)
            finally:
                (claims / f"{kind.__name__} is ready").touch()
    while not all((claims / f"{kind.__name__} is ready").exists() for kind in kinds):
        time.sleep(0.2)


def is_first(place: Path) -> bool:
    """Whether no other process has been here."""
    try:
        place.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

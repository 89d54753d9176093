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

gc.set_threshold(100_000, 20, 100)  # compilation makes much garbage: collected rarely, it takes a tenth less time

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: Ctrl-C could not be tested
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("regretless", deadline=None, derandomize=True, database=None)
settings.load_profile("regretless")


SLOW_TO_COMPILE = ["OnlineLogisticRegression", "FOLKLORE", "GAF", "AIOLI", "MirrorDescent"]  # so that none is the last


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
    kinds.sort(key=lambda kind: kind.__name__ not in SLOW_TO_COMPILE)
    kinds.sort(key=lambda kind: bool(kind.holds))  # ensembles after their members
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

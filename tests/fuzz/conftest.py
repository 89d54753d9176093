"""Fuzz tests: each plays random cases for a bounded time.

`REGRETLESS_FUZZ_SECONDS` is the time per test (0.5 seconds by default; `make fuzz` gives more) and
`REGRETLESS_FUZZ_SEED` the first seed. A failing test names its seed, which plays the same case again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np
import pytest

SECONDS = float(os.environ.get("REGRETLESS_FUZZ_SECONDS", "0.5"))
FIRST_SEED = int(os.environ.get("REGRETLESS_FUZZ_SEED", "0"))


class Cases:
    """Random generators, one per case, until the time is over; at least one."""

    def __init__(self) -> None:
        self.played = 0
        self.seed = FIRST_SEED

    def __iter__(self) -> Iterator[np.random.Generator]:
        end = time.monotonic() + SECONDS
        while self.played == 0 or time.monotonic() < end:
            self.seed = FIRST_SEED + self.played
            self.played += 1
            yield np.random.default_rng(self.seed)


@pytest.fixture
def cases(request: pytest.FixtureRequest, record_property) -> Iterator[Cases]:
    """`for rng in cases: ...` plays a case with each generator."""
    found = Cases()
    yield found
    record_property("cases", found.played)
    record_property("seed", found.seed)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failing case says which seed it was."""
    outcome = yield
    report = outcome.get_result()
    if call.when == "call" and report.failed and "cases" in getattr(item, "funcargs", {}):
        report.sections.append(("fuzz", f"REGRETLESS_FUZZ_SEED={item.funcargs['cases'].seed}"))


def pytest_terminal_summary(terminalreporter):
    """How many cases each test played."""
    stats = terminalreporter.stats.values()
    reports = [report for found in stats for report in found if hasattr(report, "user_properties")]
    counts = {}
    for report in reports:
        played = dict(report.user_properties).get("cases")
        if played is not None:
            name = report.nodeid.split("::")[-1].split("[")[0]
            counts[name] = counts.get(name, 0) + played
    for name, played in counts.items():
        terminalreporter.write_line(f"fuzz: {name}: {played} cases")

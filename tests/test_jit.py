"""Compiled code is cached on disk, keyed by all sources, and found again; import stays light."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import regretless
from regretless.core.kernels import compile_cache, jit
from regretless.core.kernels.prefetch import prefetch

# A kernel of the package that takes a moment to compile, and calls one of another file.
CALLER = """
from regretless.core.kernels.jit import kernel
from regretless.core.numbers.tally import record


@kernel
def run(tally, loss):
    record(tally, 1.0, loss, 0.0, 1.0)
"""
PLAY = """
import numpy as np
from regretless.core.numbers.tally import TALLIES
from regretless.learners import caller
tally = np.zeros(TALLIES)
caller.run(tally, {loss})
print(tally.tolist())
print(sum(caller.run.stats.cache_hits.values()), sum(caller.run.stats.cache_misses.values()))
"""


def play(cache, package, loss=1.0):
    env = {**os.environ, "REGRETLESS_CACHE_DIR": str(cache), "PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, "-c", PLAY.format(loss=loss)], env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    forecasts, counts = done.stdout.splitlines()
    return forecasts, tuple(int(c) for c in counts.split())


@pytest.fixture(scope="module")
def copy_of_the_package(tmp_path_factory):
    home = tmp_path_factory.mktemp("package")
    shutil.copytree(Path(regretless.__file__).parent, home / "regretless")
    (home / "regretless" / "learners" / "caller.py").write_text(CALLER)
    return home


@pytest.mark.slow
def test_a_second_process_compiles_nothing_and_an_edit_anywhere_compiles_anew(copy_of_the_package, tmp_path):
    first, (hits, misses) = play(tmp_path, copy_of_the_package)
    assert (hits, misses) == (0, 1)
    again, (hits, misses) = play(tmp_path, copy_of_the_package)
    assert (hits, misses) == (1, 0)
    assert again == first
    other, (hits, misses) = play(tmp_path, copy_of_the_package, loss=3.0)
    assert (hits, misses) == (1, 0), "other numbers need no other code"
    assert other != first

    tally = copy_of_the_package / "regretless" / "core" / "numbers" / "tally.py"
    before = tally.read_text()
    tally.write_text(before.replace("tally[LOSS] += loss", "tally[LOSS] += 0.5 * loss"))
    assert tally.read_text() != before
    edited, (hits, misses) = play(tmp_path, copy_of_the_package)
    assert (hits, misses) == (0, 1)
    assert edited != first, "the caller in another file must not keep the old constant"


@pytest.mark.slow
def test_a_read_only_package_folder_is_no_obstacle(copy_of_the_package, tmp_path):
    before = set((copy_of_the_package / "regretless").rglob("*.nbi"))
    play(tmp_path, copy_of_the_package)
    assert set((copy_of_the_package / "regretless").rglob("*.nbi")) == before == set()


@pytest.mark.slow
def test_without_a_writable_cache_everything_still_runs(copy_of_the_package, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    _, (hits, _misses) = play(blocked, copy_of_the_package)
    assert hits == 0


POSIX = pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have no numbers here")
AS_ROOT = pytest.mark.skipif(getattr(os, "getuid", lambda: 1)() != 0, reason="only root can give folders to others")
SOMEBODY_ELSE = 54_321


@pytest.fixture
def folder_of(monkeypatch, recwarn):
    """Where compiled code goes for a place of the cache, and what is said about it."""

    def found(cache):
        monkeypatch.setenv("REGRETLESS_CACHE_DIR", str(cache))
        recwarn.clear()
        folder = jit.cache_folder.__wrapped__()
        return folder, " ".join(str(warning.message) for warning in recwarn)

    return found


def test_a_folder_of_our_own_is_used_without_a_word(tmp_path, folder_of):
    folder, said = folder_of(tmp_path / "new" / "cache")
    assert not said
    assert folder.parent == Path(os.path.realpath(tmp_path / "new" / "cache"))
    if os.name == "posix":
        assert [each.stat().st_mode & 0o777 for each in (folder, folder.parent, folder.parent.parent)] == [0o700] * 3


def loosen(path):
    path.chmod(0o777)


def loosen_for_a_group(path):
    path.chmod(0o770)


def give_away(path):
    os.chown(path, SOMEBODY_ELSE, -1)


@POSIX
@pytest.mark.parametrize("above", [0, 1, 2], ids=["the folder", "the one above", "the one above that"])
@pytest.mark.parametrize("how", [loosen, loosen_for_a_group, pytest.param(give_away, marks=AS_ROOT)])
def test_what_others_may_have_written_is_not_loaded(how, above, tmp_path, folder_of):
    folder, _ = folder_of(tmp_path / "above" / "cache")
    changed = [folder, *folder.parents][above]
    if how is loosen_for_a_group and above == 2:
        how = loosen  # our own group may write there
    how(changed)
    other, said = folder_of(tmp_path / "above" / "cache")
    assert not other.is_relative_to(tmp_path)
    assert not list(other.iterdir()) and other.stat().st_mode & 0o777 == 0o700
    assert str(changed) in said
    assert "REGRETLESS_CACHE_DIR" in said


@POSIX
@AS_ROOT
def test_files_of_others_in_our_folder_are_not_loaded(tmp_path, folder_of):
    folder, _ = folder_of(tmp_path)
    (folder / "planted.nbi").write_bytes(b"a pickle")
    os.chown(folder / "planted.nbi", SOMEBODY_ELSE, -1)
    other, said = folder_of(tmp_path)
    assert other != folder
    assert "planted.nbi" in said


@POSIX
@AS_ROOT
def test_a_link_of_somebody_elses_is_followed_once(tmp_path, folder_of):
    """What is used is where it points to, which is ours: it may point elsewhere tomorrow."""
    (tmp_path / "ours").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "ours")
    os.chown(tmp_path / "link", SOMEBODY_ELSE, -1, follow_symlinks=False)
    folder, _ = folder_of(tmp_path / "link")
    assert folder.parent == Path(os.path.realpath(tmp_path / "ours"))


@POSIX
def test_a_private_folder_goes_with_its_process(tmp_path):
    tmp_path.chmod(0o777)
    program = "from regretless.core.kernels import jit; print(jit.cache_folder())"
    env = {**os.environ, "REGRETLESS_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
    folder = Path(done.stdout.strip())
    assert "regretless-" in folder.name
    assert not folder.exists()
    assert "chmod 700" in done.stderr


@POSIX
def test_folders_above_may_be_sticky(tmp_path):
    tmp_path.chmod(0o1777)
    (tmp_path / "ours").mkdir(mode=0o700)
    assert not compile_cache.why_distrusted(tmp_path / "ours")
    tmp_path.chmod(0o777)
    assert "other users" in compile_cache.why_distrusted(tmp_path / "ours")
    tmp_path.chmod(0o700)


def test_code_that_looks_at_its_indices_has_a_folder_of_its_own(monkeypatch):
    def folder():
        jit.cache_folder.cache_clear()
        return jit.cache_folder()

    before = folder()
    monkeypatch.setattr(jit.config, "BOUNDSCHECK", 0 if jit.config.BOUNDSCHECK else 1)
    assert folder() != before
    monkeypatch.undo()
    assert folder() == before


def test_the_stamp_is_of_every_source_file():
    assert len(jit.source_stamp()) == 16
    assert jit.cache_folder() is None or jit.source_stamp() in str(jit.cache_folder())


def test_import_regretless_imports_nothing_heavy():
    program = (
        "import sys, time; t = time.process_time(); import regretless; t = time.process_time() - t\n"
        "heavy = [m for m in ('numpy', 'scipy', 'sklearn', 'numba') if m in sys.modules]\n"
        "print(heavy, dir(regretless)); sys.exit(bool(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert "AIOLI" in done.stdout


def test_rooms_that_the_stamp_leaves_out_have_no_kernels():
    """So their edits cannot make compiled code stale: no kernel is there, and no file with kernels imports them."""
    package = Path(regretless.__file__).parent
    rooms = "|".join(jit.WITHOUT_KERNELS)
    for path in package.rglob("*.py"):
        text, outside = path.read_text(), path.relative_to(package).parts[0].removesuffix(".py")
        if outside in jit.WITHOUT_KERNELS:
            assert "kernel" not in re.findall(r"from regretless.core.kernels.jit import (.*)", text), path
        elif "regretless.core.kernels.jit" in text:
            assert not re.search(rf"^(from|import) regretless\.({rooms})\b", text, re.MULTILINE), path


EVERYTHING_COMPILED = """
import gc, numpy as np
from numba.core.dispatcher import Dispatcher
from regretless import AIOLI, FOLKLORE, OnlineLogisticRegression, play
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
for learner, K in ((OnlineLogisticRegression(), 2), (OnlineLogisticRegression(), 3), (AIOLI(), 2), (FOLKLORE(), 3)):
    play(learner, X, np.arange(40) % K, progress=False)
    learner.predict_proba(X)
kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
print(sum(sum(each.stats.cache_misses.values()) for each in kernels), len(kernels))
"""


def test_a_second_process_compiles_nothing_of_the_flagship():
    """Compiled once a machine: of all kernels that a game needs, none is compiled again."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", EVERYTHING_COMPILED], capture_output=True, text=True, timeout=900, check=True
        )
        misses, kernels = (int(number) for number in done.stdout.split())
        if misses == 0:  # tests before this one have compiled them
            break
    assert misses == 0
    assert kernels > 50


@jit.kernel
def sum_of_lines(table: np.ndarray, lines: np.ndarray) -> float:
    total = 0.0
    for i in range(lines.size):
        prefetch(table, lines[min(i + 1, lines.size - 1)])
        total += table[lines[i]].sum()
    return total


def test_fetching_ahead_changes_nothing() -> None:
    table = np.arange(600.0).reshape(20, 30)
    before = table.copy()
    assert sum_of_lines(table, np.random.default_rng(0).permutation(20)) == before.sum()
    np.testing.assert_array_equal(table, before)


@jit.lanes_kernel
def four_roots(table: np.ndarray, lines: np.ndarray, out: np.ndarray) -> None:
    for i in range(lines.size):
        for k in range(4):
            out[i, k] = out[i, k] / (1.0 + math.sqrt(table[lines[i], k] + 0.1 * table[lines[i], 4 + k]))


def test_vector_instructions_round_as_others_do() -> None:
    rng = np.random.default_rng(0)
    table, lines, out = rng.random((50, 8)), rng.permutation(50), rng.normal(size=(50, 4))
    one_by_one = out.copy()
    before = jit.config.SLP_VECTORIZE
    four_roots(table, lines, out)
    jit.kernel(getattr(four_roots, "py_func", four_roots))(table, lines, one_by_one)
    np.testing.assert_array_equal(out, one_by_one)
    assert before == jit.config.SLP_VECTORIZE

"""Getting the files of data sets: finding, downloading all or nothing, reading, checking."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import tempfile
import urllib.request
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

AT_ONCE = 1 << 16  # bytes
PATIENCE = 30  # seconds without a byte
LARGEST_RATIO = 100  # of inflation
SMALL = 1 << 24  # bytes that anything may inflate to


def find(folder: Path, file: str) -> Path | None:
    """The file in the folder, compressed or not."""
    stem = file.removesuffix(".gz")
    for path in (folder / stem, folder / f"{stem}.gz", folder / f"{stem}.bz2"):
        if path.is_file():
            return path
    return None


def contents(path: Path) -> bytes:
    """The bytes of a file, which may be compressed whatever it is called. Refuses what inflates beyond measure."""
    with path.open("rb") as file:
        start = file.read(3)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        most = max(SMALL, LARGEST_RATIO * size)
        opened: Any = file
        if start.startswith(b"\x1f\x8b"):
            opened = gzip.open(file)
        elif start == b"BZh":
            opened = bz2.open(file)
        raw: bytes = opened.read(most + 1)
    if len(raw) > most:
        raise ValueError(
            f"{path} inflates from {size} bytes to more than {most}: more than {LARGEST_RATIO} to 1 (LARGEST_RATIO)"
        )
    return raw


# ---------------------------------------------------------------------- downloading


@contextmanager
def room(cache: Path) -> Iterator[Path]:
    """A folder beside the files to be, gone when done: what is downloaded there and is not kept leaves no trace."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".download-") as folder:
        yield Path(folder)


def download_all(files: dict[str, str], folder: Path, progress: bool) -> None:
    """Every file from its address into the folder."""
    for file, address in files.items():
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer, (folder / file).open("wb") as out:
            size = answer.headers.get("Content-Length")
            total = None if size is None else int(size)
            got = 0
            with _bar(file, total, progress) as advance:
                while some := answer.read(AT_ONCE):
                    out.write(some)
                    got += len(some)
                    advance(len(some))
        if total is not None and got != total:
            raise ConnectionError(f"{address} broke off after {got} of {total} bytes")


def elec2_of_openml(files: dict[str, str], folder: Path, progress: bool) -> None:
    """OpenML's data set 151, whose days are counted from 0, written down as svmlight text with days from 1."""
    from sklearn.datasets import dump_svmlight_file, fetch_openml

    data = fetch_openml(data_id=151, data_home=str(folder), as_frame=False, parser="liac-arff")
    X = np.asarray(data.data, dtype=np.float64)
    day = data.feature_names.index("day")
    X[:, day] += 1 - X[:, day].min()
    y = np.where(np.asarray(data.target) == "UP", 1, -1)
    for file in files:
        dump_svmlight_file(X, y, str(folder / file), zero_based=False)


def keep(paths: list[Path], cache: Path, pin: str | None) -> None:
    """Move checked files to the cache, each in one step, with the sha256 they are held to from now on, if any."""
    if pin is not None:
        note = paths[0].with_name(f"{paths[0].name}.sha256")
        note.write_text(f"{pin}\n")
        os.replace(note, cache / note.name)
    for path in paths:
        os.replace(path, cache / path.name)


@contextmanager
def _bar(file: str, total: int | None, wanted: bool) -> Iterator[Callable[[int], Any]]:
    """Yields what is to be told of bytes got: a progress bar where there is a terminal, and rich is installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn
    except ImportError:
        wanted = False
    if not wanted or not (console := Console(stderr=True)).is_terminal:
        yield lambda size: None
        return
    columns = BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress("{task.description}", *columns, console=console) as progress:
        task = progress.add_task(file, total=total)
        yield lambda size: progress.advance(task, size)


# ---------------------------------------------------------------------- reading


def read_svmlight(paths: list[Path], features: int) -> tuple[Any, Any]:
    """CSR rows and labels of one file of svmlight text."""
    from io import BytesIO

    from sklearn.datasets import load_svmlight_file

    (path,) = paths
    try:
        X, y = load_svmlight_file(BytesIO(contents(path)), n_features=features, zero_based=False)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no svmlight text with {features} features ({error}): remove it.") from error
    return X, y


def read_idx(paths: list[Path], features: int) -> tuple[Any, Any]:
    """CSR rows and labels of two idx files: a header that ends with the sizes, then bytes."""
    try:
        images, labels = (contents(path) for path in paths)
        n = int.from_bytes(labels[4:8], "big")
        X = np.frombuffer(images, dtype=np.uint8, offset=16).reshape(n, features)
        y = np.frombuffer(labels, dtype=np.uint8, offset=8)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{paths[0]} and {paths[1].name} are no idx files ({error}): remove them.") from error
    return sparse.csr_matrix(X, dtype=np.float64), y


# ---------------------------------------------------------------------- checking


def digest(X: Any, y: Any) -> str:
    """The sha256 of where the nonzero values are, of these, and of the labels: 8 bytes each, little-endian."""
    X = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    sha = hashlib.sha256()
    for part, kind in ((X.indptr, "<i8"), (X.indices, "<i8"), (X.data, "<f8"), (y, "<f8")):
        sha.update(np.ascontiguousarray(part, dtype=kind).tobytes())
    return sha.hexdigest()


def check(
    name: str, X: Any, y: Any, counts: tuple[int, ...], known: str, path: Path, source: str | None = None
) -> str | None:
    """Refuse what is not the data set; None if it is the known copy, else the sha256 of the copy it is."""
    where = str(path) if source is None else f"what {source} sent"
    remedy = "Remove it and load again." if source is None else "Nothing was kept."
    found = digest(X, y)
    if found == known:
        return None
    met = tuple(np.unique(y, return_counts=True)[1].tolist())
    if met != counts or X.shape[0] != len(y):
        raise ValueError(f"{where} is not {name}: rows of each class are {met}, expected {counts}. {remedy}")
    note = path.with_name(f"{path.name}.sha256")
    if source is None and note.is_file():
        pinned = note.read_text().strip()
        if found != pinned:
            raise ValueError(
                f"{path} has changed since it was downloaded: sha256 of its contents {found}, was {pinned}. "
                f"{remedy} (Its sha256 is kept in {note}.)"
            )
        return found
    warnings.warn(
        f"{where} is another copy of {name} than the one its sha256 is known of ({found}, known {known}): rows, "
        "features and class counts are right, but values differ.",
        stacklevel=4,
    )
    return found

"""Files of data sets: find, download (all or nothing), read and check them."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import tempfile
import urllib.request
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from regretless.core.progress import progress_bar

AT_ONCE = 1 << 16  # bytes
PATIENCE = 30  # seconds without data
LARGEST_RATIO = 100  # uncompressed to compressed size
SMALL = 1 << 24  # bytes to which any file may expand


def find(folder: Path, file: str) -> Path | None:
    """The file in the folder, compressed or not; None if it is missing."""
    stem = file.removesuffix(".gz")
    for path in (folder / stem, folder / f"{stem}.gz", folder / f"{stem}.bz2"):
        if path.is_file():
            return path
    return None


def contents(path: Path) -> bytes:
    """The uncompressed bytes of a file, whatever its name. Refuses files that expand too much."""
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
            f"{path} expands from {size} bytes to more than {most}: more than {LARGEST_RATIO} to 1 (LARGEST_RATIO)"
        )
    return raw


# ---------------------------------------------------------------------- downloading


@contextmanager
def temporary_folder(cache: Path) -> Iterator[Path]:
    """A temporary folder next to the cached files; downloads that are not kept leave no trace."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".download-") as folder:
        yield Path(folder)


def download_all(files: dict[str, str], folder: Path, progress: bool) -> None:
    """Download every file into the folder."""
    for file, address in files.items():
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer, (folder / file).open("wb") as out:
            size = answer.headers.get("Content-Length")
            total = None if size is None else int(size)
            got = 0
            with progress_bar(progress, total, file, unit="bytes") as bar:
                while some := answer.read(AT_ONCE):
                    out.write(some)
                    got += len(some)
                    bar.advance(len(some))
        if total is not None and got != total:
            raise ConnectionError(f"{address} ended after {got} of {total} bytes")


def elec2_of_openml(files: dict[str, str], folder: Path, progress: bool) -> None:
    """OpenML's data set 151, whose days count from 0, written as svmlight text with days from 1."""
    from sklearn.datasets import dump_svmlight_file, fetch_openml

    data = fetch_openml(data_id=151, data_home=str(folder), as_frame=False, parser="liac-arff")
    X = np.asarray(data.data, dtype=np.float64)
    day = data.feature_names.index("day")
    X[:, day] += 1 - X[:, day].min()
    y = np.where(np.asarray(data.target) == "UP", 1, -1)
    for file in files:
        dump_svmlight_file(X, y, str(folder / file), zero_based=False)


def keep(paths: list[Path], cache: Path, pin: str | None) -> None:
    """Move checked files to the cache, each atomically, with the sha256 to compare with from then on, if any."""
    if pin is not None:
        note = paths[0].with_name(f"{paths[0].name}.sha256")
        note.write_text(f"{pin}\n")
        os.replace(note, cache / note.name)
    for path in paths:
        os.replace(path, cache / path.name)


# ---------------------------------------------------------------------- reading


def read_svmlight(paths: list[Path], features: int) -> tuple[Any, Any]:
    """CSR rows and labels of one svmlight file."""
    from io import BytesIO

    from sklearn.datasets import load_svmlight_file

    (path,) = paths
    try:
        X, y = load_svmlight_file(BytesIO(contents(path)), n_features=features, zero_based=False)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not svmlight text with {features} features ({error}): remove it.") from error
    return X, y


def read_idx(paths: list[Path], features: int) -> tuple[Any, Any]:
    """CSR rows and labels of two idx files: a header that ends with the sizes, then bytes."""
    try:
        images, labels = (contents(path) for path in paths)
        n = int.from_bytes(labels[4:8], "big")
        X = np.frombuffer(images, dtype=np.uint8, offset=16).reshape(n, features)
        y = np.frombuffer(labels, dtype=np.uint8, offset=8)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{paths[0]} and {paths[1].name} are not idx files ({error}): remove them.") from error
    return sparse.csr_matrix(X, dtype=np.float64), y


# ---------------------------------------------------------------------- checking


def digest(X: Any, y: Any) -> str:
    """The sha256 of the positions and values of the nonzero entries and of the labels: 8 bytes each, little-endian."""
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
    """Refuse data that is not the data set; None for the known copy, else the sha256 of the copy found."""
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
        f"{where} is a different copy of {name} ({found}, known {known}): rows, "
        "features and class counts are right, but values differ.",
        stacklevel=4,
    )
    return found

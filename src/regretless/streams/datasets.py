"""Data sets by name: those of scikit-learn, and public ones from a folder, the cache or the network."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from regretless.core.kernels.compile_cache import cache_home
from regretless.streams import fetch
from regretless.streams.types import Dataset

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"

LETTERS_A_TO_M = (594, 567, 554, 598, 565, 565, 547, 538, 567, 575, 572, 560, 607)
LETTERS_N_TO_Z = (605, 574, 597, 594, 568, 563, 599, 606, 581, 576, 583, 602, 543)

SKLEARN = {
    "breast-cancer": "load_breast_cancer",
    "digits": "load_digits",
    "wine": "load_wine",
    "iris": "load_iris",
}


class Part(NamedTuple):
    """The training or the test rows: their files, and what must be in them."""

    files: dict[str, str]  # file name -> address
    counts: tuple[int, ...]  # rows of each class, classes in order
    sha256: str  # of the labels and values, see `fetch.digest`


class Public(NamedTuple):
    """A data set that others publish."""

    features: int
    train: Part
    test: Part | None
    about: str
    mostly_zero: bool = False
    reader: Callable[[list[Path], int], tuple[Any, Any]] = fetch.read_svmlight
    getter: Callable[[dict[str, str], Path, bool], None] = fetch.download_all


DATASETS = {
    "vehicle": Public(
        18,
        Part(
            {"vehicle.scale": f"{LIBSVM}/multiclass/vehicle.scale"},
            (212, 217, 218, 199),
            "fd032dfb28289acda01a03f08821ec03b52fe61006fbd665fe7c9c4eeb8af5cc",
        ),
        None,
        "Statlog vehicle silhouettes, columns in [-1, 1]",
    ),
    "segment": Public(
        19,
        Part(
            {"segment.scale": f"{LIBSVM}/multiclass/segment.scale"},
            (330,) * 7,
            "5c5a346cc32239e8662b8d8c87b2f76e2f841045a40af764932156d2106a9466",
        ),
        None,
        "Statlog image segmentation, columns in [-1, 1]",
    ),
    "shuttle": Public(
        9,
        Part(
            {"shuttle.scale": f"{LIBSVM}/multiclass/shuttle.scale"},
            (34108, 37, 132, 6748, 2458, 6, 11),
            "bd2debda4974d3a75e32133c21a9b53b2e54188377fee94ead7df936f5b56209",
        ),
        Part(
            {"shuttle.scale.t": f"{LIBSVM}/multiclass/shuttle.scale.t"},
            (11478, 13, 39, 2155, 809, 4, 2),
            "79e6f9176247a6b78d191344dec5b51cbc730818a19f3fc8f08401c7d9080eab",
        ),
        "Statlog shuttle, columns in [-1, 1] over the training rows",
    ),
    "satimage": Public(
        36,
        Part(
            {"satimage.scale": f"{LIBSVM}/multiclass/satimage.scale"},
            (1072, 479, 961, 415, 470, 1038),
            "28ae2a966c4ac5f46ad50ed189452d3c2d001ac20bd66f8ec070f78c232f5de7",
        ),
        None,
        "Statlog Landsat satellite, training part, columns in [-1, 1]",
    ),
    "letter": Public(
        16,
        Part(
            {"letter.scale": f"{LIBSVM}/multiclass/letter.scale"},
            (*LETTERS_A_TO_M, *LETTERS_N_TO_Z),
            "1fbc21cad4cfe7c908cff9b64c7f68ccdcf106d1e2d3f9c6a4223617889cb260",
        ),
        None,
        "Statlog letters, training part, columns in [-1, 1]",
    ),
    "pendigits": Public(
        16,
        Part(
            {"pendigits": f"{LIBSVM}/multiclass/pendigits"},
            (780, 779, 780, 719, 780, 720, 720, 778, 719, 719),
            "5dbca363547edc88783040af5a2a10b401b87e45ae6568bb9ce9345294137948",
        ),
        Part(
            {"pendigits.t": f"{LIBSVM}/multiclass/pendigits.t"},
            (363, 364, 364, 336, 364, 335, 336, 364, 336, 336),
            "1f3b770b3b73b333e000067c29833aa27e92d3f924fce4c1a77dba913308f824",
        ),
        "pen-written digits, whole numbers from 0 to 100",
    ),
    "a9a": Public(
        123,
        Part(
            {"a9a": f"{LIBSVM}/binary/a9a"},
            (24720, 7841),
            "da67dd42e94520ff7ffef42ee314af73b99deb38c2238be626de7ed3ce0ac868",
        ),
        Part(
            {"a9a.t": f"{LIBSVM}/binary/a9a.t"},
            (12435, 3846),
            "b3bbb3d5ba828f34fb6022ceaa52109a4b3ff0bbdb5f253c87cc77f2287d2534",
        ),
        "UCI Adult, every column 0 or 1; +1 earns more than 50,000 dollars",
        mostly_zero=True,
    ),
    "phishing": Public(
        68,
        Part(
            {"phishing": f"{LIBSVM}/binary/phishing"},
            (4898, 6157),
            "4b7fe58cf997430f7455fd5e5cb778766164ca22c4525a88860f038e15199884",
        ),
        None,
        "UCI phishing websites, rows of norm 1",
        mostly_zero=True,
    ),
    "mushrooms": Public(
        112,
        Part(
            {"mushrooms": f"{LIBSVM}/binary/mushrooms"},
            (3916, 4208),
            "cb7ac660f849a9a3338330dec0a88e16f01e479ce526befd49a8c7ac83b3b6ea",
        ),
        None,
        "UCI mushrooms, every column 0 or 1; 1 is poisonous, 2 edible; linearly separable",
        mostly_zero=True,
    ),
    "elec2": Public(
        8,
        Part(
            {"elec2": "OpenML data set 151"},
            (26075, 19237),
            "8910a3e5cb24702cd543f248c3b0afefd01d268e311e2bd5989c59da29c52da9",
        ),
        None,
        "prices of electricity in New South Wales, in the order of time; +1 is UP",
        getter=fetch.elec2_of_openml,
    ),
    "mnist": Public(
        784,
        Part(
            {
                "mnist-train-images-idx3-ubyte.gz": f"{MNIST}/train-images-idx3-ubyte.gz",
                "mnist-train-labels-idx1-ubyte.gz": f"{MNIST}/train-labels-idx1-ubyte.gz",
            },
            (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
            "09d49c00e6b4a549141ad91426f2a2c76a439b446293bd4359e6292a89d5dd27",
        ),
        Part(
            {
                "mnist-t10k-images-idx3-ubyte.gz": f"{MNIST}/t10k-images-idx3-ubyte.gz",
                "mnist-t10k-labels-idx1-ubyte.gz": f"{MNIST}/t10k-labels-idx1-ubyte.gz",
            },
            (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
            "bdf542be485cfae78e9ebca34a3298ebd87ed98823116a94d2b18cb6999a5193",
        ),
        "handwritten digits of 28 x 28 grey values from 0 to 255",
        mostly_zero=True,
        reader=fetch.read_idx,
    ),
}


def load_dataset(
    name: str,
    *,
    part: str = "train",
    cache: str | os.PathLike[str] | None = None,
    download: bool = True,
    progress: bool = True,
) -> Dataset:
    """A data set as its source gives it: nothing is scaled, and rows are in the order of the file.

    breast-cancer, digits, wine and iris come with scikit-learn. vehicle, segment, shuttle, satimage, letter, pendigits,
    a9a, phishing, mushrooms, elec2 and mnist are read from the folder in the environment variable REGRETLESS_DATA, or
    from the user's cache, or else downloaded to the cache: elec2 from OpenML through scikit-learn, mnist from PyTorch's
    mirror, the others from the LIBSVM page.

    Data is checked on every load, against the known sha256 of its labels and values, which does not depend on
    compression or number format. A different copy (a source may differ in the last digit) is accepted with a warning if
    its rows, features and class counts are right; a downloaded copy is then compared with its own sha256 from then on.
    Anything else is refused and not kept.

    Parameters
    ----------
    name : one of the names above.
    part : "train", "test" or "all", which is both in this order. A test part have shuttle, pendigits, a9a and mnist.
    cache : the download folder; by default `data` in the user's cache (see REGRETLESS_CACHE_DIR).
    download : whether to download missing files.
    progress : whether to show a progress bar (in a terminal, with rich installed).

    Examples
    --------
    >>> from regretless import load_dataset
    >>> data = load_dataset("iris")
    >>> data.X.shape, data.classes
    ((150, 4), [0, 1, 2])
    """
    if part not in ("train", "test", "all"):
        raise ValueError(f'part={part!r}: choose "train", "test" or "all".')
    if name in SKLEARN:
        return _of_sklearn(name, part)
    if name not in DATASETS:
        raise ValueError(f"unknown data set {name!r}: choose one of {', '.join((*SKLEARN, *DATASETS))}.")
    public = DATASETS[name]
    if part == "test" and public.test is None:
        raise ValueError(f'{name} has no test part: remove part="test".')
    wanted = [public.train, public.test] if part == "all" else [public.test if part == "test" else public.train]
    folder = cache_home() / "data" if cache is None else Path(cache)
    loaded = []
    for each in wanted:
        if each is not None:
            loaded.append(_load(name, public, each, folder, download, progress))  # warnings point to the caller's line
    X = sparse.vstack([X for X, _ in loaded], format="csr") if len(loaded) > 1 else loaded[0][0]
    y = np.concatenate([y for _, y in loaded]).astype(np.int64)
    return Dataset(name, X if public.mostly_zero else X.toarray(), y, np.unique(y).tolist(), _about(y, X, public.about))


def _of_sklearn(name: str, part: str) -> Dataset:
    from sklearn import datasets

    if part == "test":
        raise ValueError(f'{name} has no test part: remove part="test".')
    X, y = getattr(datasets, SKLEARN[name])(return_X_y=True)
    return Dataset(name, X, y, np.unique(y).tolist(), _about(y, X, "comes with scikit-learn"))


def _about(y: Any, X: Any, what: str) -> str:
    return f"{X.shape[0]} rows, {X.shape[1]} features, {len(np.unique(y))} classes; {what}"


def _load(name: str, public: Public, part: Part, cache: Path, download: bool, progress: bool) -> tuple[Any, Any]:
    """CSR rows and labels of a part: found, or downloaded and only then moved to the cache; checked."""
    given = os.environ.get("REGRETLESS_DATA")
    for folder in [Path(given), cache] if given else [cache]:
        found = [path for file in part.files if (path := fetch.find(folder, file)) is not None]
        if len(found) == len(part.files):
            X, y = public.reader(found, public.features)
            fetch.check(name, X, y, part.counts, part.sha256, found[0])
            return X, y
    places = f"{' and '.join(part.files)} (or compressed, .gz or .bz2) into " + (
        f"{given} (REGRETLESS_DATA) or {cache}"
        if given
        else f"{cache}, or into a folder named by the environment variable REGRETLESS_DATA"
    )
    if not download:
        raise FileNotFoundError(f"{name} was not found, and download=False. Put {places}.")
    with fetch.temporary_folder(cache) as folder:
        try:
            public.getter(part.files, folder, progress)
        except OSError as error:
            sources = ", ".join(part.files.values())
            raise ConnectionError(f"{name} could not be downloaded from {sources} ({error}). Put {places}.") from error
        paths = [folder / file for file in part.files]
        X, y = public.reader(paths, public.features)
        pin = fetch.check(name, X, y, part.counts, part.sha256, paths[0], source=", ".join(part.files.values()))
        fetch.keep(paths, cache, pin)
    return X, y

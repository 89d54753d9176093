"""Data sets by name: found, downloaded, checked, refused."""

from __future__ import annotations

import bz2
import gzip
import os
import re
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import regretless
from regretless.streams import NAMES, datasets, fetch, load_dataset, stream
from regretless.streams.datasets import DATASETS, SKLEARN, Part, Public

FOLDER = os.environ.get("REGRETLESS_DATA")
needs_data = pytest.mark.skipif(not FOLDER, reason="REGRETLESS_DATA names no folder of data sets")


@pytest.fixture
def away(tmp_path, monkeypatch):
    """Nobody's data, and a cache of the test's own."""
    monkeypatch.delenv("REGRETLESS_DATA", raising=False)
    monkeypatch.setenv("REGRETLESS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "data"


@pytest.fixture
def served(tmp_path):
    """A folder on a local server, and its address."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def tiny(served, monkeypatch):
    """A data set of 40 rows in the register, served."""
    folder, address = served
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.repeat([1, 2], [25, 15])
    dump_svmlight_file(X, y, str(folder / "tiny"), zero_based=False)
    part = Part({"tiny": f"{address}/tiny"}, (25, 15), fetch.digest(*fetch.read_svmlight([folder / "tiny"], 3)))
    monkeypatch.setitem(datasets.DATASETS, "tiny", Public(3, part, None, "made up"))
    return folder / "tiny", X, y


def test_a_download_is_checked_kept_and_found_again(away, tiny):
    file, X, y = tiny
    data = load_dataset("tiny")
    assert np.allclose(data.X, X) and np.array_equal(data.y, y) and data.classes == [1, 2]
    assert [path.name for path in away.iterdir()] == ["tiny"]
    file.unlink()  # the network is not asked again
    assert np.array_equal(load_dataset("tiny").X, data.X)


def test_progress_is_told(tiny, tmp_path, monkeypatch):
    file, _, _ = tiny
    told = []

    class Bar:
        def __init__(self, wanted, total, description, unit):
            told.append((description, total, wanted, unit))

        def __enter__(self):
            return self

        def advance(self, amount):
            told.append(amount)

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(fetch, "progress_bar", Bar)
    monkeypatch.setattr(fetch, "AT_ONCE", 1000)
    load_dataset("tiny", cache=tmp_path / "c")
    size = file.stat().st_size
    assert told[0] == ("tiny", size, True, "bytes") and sum(told[1:]) == size and len(told) == 1 + -(-size // 1000)


def test_what_is_not_the_data_set_is_refused_and_nothing_is_left(away, tiny):
    file, _, _ = tiny
    for spoil in (file.read_bytes()[:-200], b"<html>moved</html>", gzip.compress(file.read_bytes())[:-20]):
        file.write_bytes(spoil)
        with pytest.raises(ValueError, match=r"is not tiny: rows of each class.*Nothing was kept|not svmlight text"):
            load_dataset("tiny")
        assert list(away.iterdir()) == []


def test_another_copy_is_taken_with_a_warning_and_then_held_to(away, tiny):
    file, X, y = tiny
    dump_svmlight_file(X + 1e-6, y, str(file), zero_based=False)
    with pytest.warns(UserWarning, match="a different copy of tiny"):
        data = load_dataset("tiny")
    assert np.allclose(data.X, X + 1e-6)
    assert sorted(path.name for path in away.iterdir()) == ["tiny", "tiny.sha256"]
    assert np.array_equal(load_dataset("tiny").X, data.X)  # no warning: it is the copy that was downloaded
    dump_svmlight_file(X + 2e-6, y, str(away / "tiny"), zero_based=False)
    with pytest.raises(ValueError, match=r"has changed since it was downloaded.*Remove it and load again"):
        load_dataset("tiny")


def test_offline_says_where_to_put_the_file(away, monkeypatch, tmp_path):
    gone = DATASETS["vehicle"].train._replace(files={"vehicle.scale": "http://127.0.0.1:9/vehicle.scale"})
    monkeypatch.setitem(datasets.DATASETS, "vehicle", DATASETS["vehicle"]._replace(train=gone))
    where = re.escape(str(away))
    with pytest.raises(ConnectionError, match=rf"127.*Put vehicle\.scale.* into {where}.*REGRETLESS_DATA"):
        load_dataset("vehicle")
    assert list(away.iterdir()) == []
    with pytest.raises(FileNotFoundError, match=rf"download=False.*Put vehicle\.scale.* into {where}"):
        load_dataset("vehicle", download=False)
    monkeypatch.setenv("REGRETLESS_DATA", str(tmp_path / "mine"))
    with pytest.raises(FileNotFoundError, match=rf"{re.escape(str(tmp_path / 'mine'))}.*or {where}"):
        load_dataset("vehicle", download=False)


def test_a_missing_page_is_a_failed_download(away, tiny):
    file, _, _ = tiny
    file.unlink()
    with pytest.raises(ConnectionError, match="404"):
        load_dataset("tiny")
    assert list(away.iterdir()) == []


@pytest.mark.parametrize("pack", [lambda raw: raw, gzip.compress, bz2.compress], ids=["plain", "gz", "bz2"])
def test_compression_does_not_matter(away, tiny, tmp_path, monkeypatch, pack):
    file, X, _ = tiny
    mine = tmp_path / "mine"
    mine.mkdir()
    suffix = {gzip.compress: ".gz", bz2.compress: ".bz2"}.get(pack, "")
    (mine / f"tiny{suffix}").write_bytes(pack(file.read_bytes()))
    monkeypatch.setenv("REGRETLESS_DATA", str(mine))
    assert np.allclose(load_dataset("tiny", download=False).X, X)
    assert not away.exists()


def test_elec2_comes_from_openml(away, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(30), np.arange(30) % 7, rng.random((30, 6))]).round(6)  # OpenML's days begin with 0
    up = rng.random(30) < 0.4
    names = ["date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
    asked = {}

    def fetch_openml(**how):
        asked.update(how)
        return SimpleNamespace(data=X, feature_names=names, target=np.where(up, "UP", "DOWN"))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    public = DATASETS["elec2"]
    right = X + (np.arange(8) == 1)
    part = public.train._replace(
        counts=(30 - up.sum(), up.sum()), sha256=fetch.digest(sparse.csr_matrix(right), np.where(up, 1, -1))
    )
    monkeypatch.setitem(datasets.DATASETS, "elec2", public._replace(train=part))
    data = load_dataset("elec2")
    assert asked["data_id"] == 151
    assert np.array_equal(data.X, right) and np.array_equal(data.y, np.where(up, 1, -1))
    assert [path.name for path in away.iterdir()] == ["elec2"]


@pytest.mark.parametrize("name", SKLEARN)
def test_what_comes_with_scikit_learn(name, away):
    data = load_dataset(name)
    assert data.X.shape[0] == len(data.y) and data.name == name
    with pytest.raises(ValueError, match="no test part"):
        load_dataset(name, part="test")


def test_bad_requests_are_refused():
    with pytest.raises(ValueError, match=r"unknown data set 'titanic'.*vehicle"):
        load_dataset("titanic")
    with pytest.raises(ValueError, match="part='validation'"):
        load_dataset("iris", part="validation")
    with pytest.raises(ValueError, match="no test part"):
        load_dataset("vehicle", part="test")


@needs_data
@pytest.mark.parametrize("name", [name for name in DATASETS if name != "mnist"])
def test_the_public_data_sets(name, recwarn):
    public = DATASETS[name]
    both = load_dataset(name, part="all", download=False)
    assert not [w for w in recwarn if "a different copy" in str(w.message)]
    counts = [np.array(part.counts) for part in (public.train, public.test) if part is not None]
    assert np.array_equal(np.unique(both.y, return_counts=True)[1], sum(counts))
    assert both.X.shape == (sum(c.sum() for c in counts), public.features)
    assert sparse.issparse(both.X) == public.mostly_zero
    if public.test is not None:
        test = load_dataset(name, part="test", download=False)
        assert np.array_equal(both.y[-len(test.y) :], test.y)


@needs_data
def test_mnist():
    data = load_dataset("mnist", part="test", download=False)
    assert data.X.shape == (10_000, 784) and data.y[:5].tolist() == [7, 2, 1, 0, 4] and data.X.max() == 255


@needs_data
def test_a_spoilt_file_of_ones_own_is_noticed(tmp_path, monkeypatch, away):
    shutil.copyfile(Path(FOLDER or "") / "vehicle.scale", tmp_path / "vehicle.scale")
    monkeypatch.setenv("REGRETLESS_DATA", str(tmp_path))
    text = (tmp_path / "vehicle.scale").read_text()
    (tmp_path / "vehicle.scale").write_text(text.replace("0.153846", "0.253846", 1))
    with pytest.warns(UserWarning, match="a different copy of vehicle"):
        load_dataset("vehicle")
    (tmp_path / "vehicle.scale").write_text(text[: len(text) // 2])
    with pytest.raises(ValueError, match=r"vehicle\.scale is not vehicle|not svmlight text"):
        load_dataset("vehicle")


@needs_data
@pytest.mark.parametrize("name", ["vehicle", "mushrooms"])
def test_streams_of_data_sets(name):
    assert name in NAMES
    some = stream(name, rows=200, seed=1)
    d = DATASETS[name].features
    assert some.X.shape == (200, d + 1) and np.allclose(some.X[:, -1], 1 / np.sqrt(d + 1))
    assert 0.5 < np.linalg.norm(some.X, axis=1).mean() < 1.5
    assert not np.array_equal(some.y, stream(name, rows=200, seed=2).y)


def test_public_names_are_found_on_first_use():
    assert regretless.load_dataset is load_dataset
    assert regretless.streams.stream is stream

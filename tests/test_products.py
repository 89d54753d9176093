"""The products of panels: right for every layout, limits that end, and results that do not depend on threads."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from regretless import AIOLI, FOLKLORE, ONS, OnlineLogisticRegression, VovkAzouryWarmuth
from regretless.core.kernels import products
from regretless.learners.logistic import threads


def blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def layouts(A):
    """The same matrix with rows together, with columns together, and as a part of a larger one of each kind."""
    wide = np.full((A.shape[0] + 3, A.shape[1] + 2), np.nan, dtype=A.dtype)
    wide[2:-1, 1:-1] = A
    return [A.copy(), np.asfortranarray(A), wide[2:-1, 1:-1], np.asfortranarray(wide)[2:-1, 1:-1]]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("m", "k", "n"), [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1)])
def test_products_of_every_layout(dtype, m, k, n):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    close = {"rtol": 0.0, "atol": 1e-13 if dtype == np.float64 else 1e-5}
    for a in layouts(A):
        for b in layouts(B):
            np.testing.assert_allclose(products.multiply(a, b), A @ B, **close)
            out = layouts(np.ones((m, n), dtype=dtype))[2]
            products.multiply(a, b, out, factor=-2.0, keep=3.0)
            np.testing.assert_allclose(out, 3.0 - 2.0 * (A @ B), **close)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_symmetric_products_use_the_upper_triangle(dtype):
    rng = np.random.default_rng(1)
    full, x = rng.normal(size=(7, 7)).astype(dtype), rng.normal(size=(3, 7)).astype(dtype)
    full = full + full.T
    upper, out = np.triu(full) + np.tril(np.full((7, 7), np.nan, dtype=dtype), -1), np.empty((3, 7), dtype=dtype)
    products.multiply_symmetric(x, upper, out)
    np.testing.assert_allclose(out, x @ full, rtol=0.0, atol=1e-5)
    products.subtract_square(x, upper)
    np.testing.assert_allclose(np.triu(upper), np.triu(full - x.T @ x), rtol=0.0, atol=1e-5)


def test_unfit_matrices_are_refused():
    A = np.ones((4, 4))
    with pytest.raises(ValueError, match="products of float64"):
        products.multiply(A, A[:3])
    with pytest.raises(ValueError, match="products of float64"):
        products.multiply(A, A.astype(np.float32))
    with pytest.raises(ValueError, match="contiguous"):
        products.multiply(A[::2, ::2], A[:2])


def test_several_threads_are_those_that_share_would_use(monkeypatch):
    monkeypatch.setattr(products.numba, "get_num_threads", lambda: 4)
    with threadpool_limits(1):
        assert not products.several_threads()
    with threadpool_limits(2):
        assert products.several_threads()
        with products.one_thread_per_product():
            assert products.several_threads() and blas_threads().count(1)
        monkeypatch.setattr(products.numba, "get_num_threads", lambda: 1)
        assert not products.several_threads()


def test_limits_end_also_after_errors_and_with_the_last_thread():
    before = blas_threads()
    with pytest.raises(RuntimeError, match="in between"), products.one_thread_per_product():
        with products.one_thread_per_product():
            assert min(blas_threads()) == 1
        assert min(blas_threads()) == 1
        raise RuntimeError("in between")
    assert blas_threads() == before
    inside, leave = threading.Event(), threading.Event()

    def other():
        with products.one_thread_per_product():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with products.one_thread_per_product():
        thread.start()
        assert inside.wait(60)
    assert min(blas_threads()) == 1  # the other thread is still in its panel
    leave.set()
    thread.join()
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_the_limits_of_before():
    before = blas_threads()
    with products.one_thread_per_product():
        child = os.fork()
        if child == 0:
            os._exit(0 if blas_threads() == before and products._limit.depth == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_parts_are_shared_and_errors_reported(monkeypatch):
    monkeypatch.setattr(products, "WORTH_A_THREAD", 1.0)
    names, meet = set(), threading.Barrier(3)

    def work(part):
        meet.wait(60)  # no thread has two parts
        names.add(threading.current_thread().name)

    monkeypatch.setattr(products._limit, "threads", 3)
    products.share(work, range(3), 100.0)
    assert len(names) == 3
    with pytest.raises(ZeroDivisionError):
        products.share(lambda part: 1 // part, [1, 1, 0, 1], 100.0)


@pytest.mark.parametrize(
    ("learner", "d", "K"),
    [
        (AIOLI(), 520, 2),
        (AIOLI(precision="single"), 520, 2),
        (VovkAzouryWarmuth(), 520, 2),
        (FOLKLORE(), 130, 5),
        (ONS(radius=1000.0, gamma=0.5, epsilon=1.0), 520, 2),
        pytest.param(OnlineLogisticRegression(effort="high"), 6, 3, marks=pytest.mark.slow),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else str(value),
)
def test_results_do_not_depend_on_the_number_of_threads(monkeypatch, learner, d, K):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(150, d)) / np.sqrt(d), rng.integers(0, K, 150)
    y[:K] = np.arange(K)
    with threadpool_limits(1):
        one = clone(learner)
        said = one.predict_then_learn(X, y)
    monkeypatch.setattr(products, "WORTH_A_THREAD", 1.0)
    monkeypatch.setattr(products._Limit, "enter", lambda self: setattr(self, "threads", 4))
    monkeypatch.setattr(products._Limit, "leave", lambda self: None)
    monkeypatch.setattr(threads, "several_threads", lambda: True)
    with threadpool_limits(1):  # per call: as inside `one_thread_per_product`
        several = clone(learner)
        np.testing.assert_array_equal(several.predict_then_learn(X, y), said)
    for ours, theirs in zip(several.state_, one.state_, strict=True):
        np.testing.assert_array_equal(ours, theirs)

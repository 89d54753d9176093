"""Panels on a device of PyTorch: the same game as on the processor. Its CPU device runs the same code as a GPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regretless
from regretless import AIOLI, FOLKLORE, GAF, Mixture, VovkAzouryWarmuth
from regretless.learners.second_order import device as devices

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed: pip install 'regretless[gpu]'")
DEVICES = ["cpu"] + (["cuda"] if torch is not None and torch.cuda.is_available() else [])
rng = np.random.default_rng(0)
WIDE = rng.normal(size=(700, 300)) / 20
NARROW = rng.normal(size=(400, 40)) / 6
GAMES: dict[str, tuple[Any, np.ndarray, np.ndarray]] = {
    "AIOLI": (AIOLI(radius=3.0), WIDE, (WIDE[:, 0] > 0).astype(int)),
    "single": (AIOLI(radius=3.0, precision="single"), WIDE, (WIDE[:, 0] > 0).astype(int)),
    "FOLKLORE": (FOLKLORE(radius=3.0), NARROW, np.argmax(NARROW[:, :8], axis=1)),
    "GAF": (GAF(radius=3.0, n_samples=16), NARROW, np.argmax(NARROW[:, :8], axis=1)),
    "Vovk": (VovkAzouryWarmuth(), WIDE, WIDE[:, 0]),
}


def fresh(name: str, device: str | None) -> Any:
    learner = GAMES[name][0]
    return type(learner)(**{**learner.get_params(), "device": device})


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", GAMES)
def test_the_same_game_as_on_the_processor(name: str, device: str, tmp_path: Path) -> None:
    _, X, y = GAMES[name]
    here, there = fresh(name, None), fresh(name, device)
    tolerance = 1e-4 if name == "single" else 1e-10
    np.testing.assert_allclose(there.predict_then_learn(X, y), here.predict_then_learn(X, y), atol=tolerance)
    np.testing.assert_allclose(there.state_.P, here.state_.P, atol=tolerance)
    np.testing.assert_allclose(there.state_.w, here.state_.w, atol=tolerance)
    np.testing.assert_allclose(there.state_.tally, here.state_.tally, rtol=tolerance, atol=tolerance)
    assert (there.state_.P == there.state_.P.T).all()
    if name not in ("single", "Vovk"):
        assert there.regret_certificate() == pytest.approx(here.regret_certificate(), abs=1e-8)
    said = "predict_proba" if hasattr(here, "predict_proba") else "predict"
    np.testing.assert_allclose(getattr(there, said)(X), getattr(here, said)(X), atol=tolerance)
    there.save(tmp_path / "model.npz")
    again = regretless.load(tmp_path / "model.npz").set_params(device=None)  # goes on without the device
    again.partial_fit(X, y)
    here.partial_fit(X, y)
    np.testing.assert_allclose(again.state_.w, here.state_.w, atol=100 * tolerance)


@needs_torch
@pytest.mark.parametrize("name", ["AIOLI", "FOLKLORE"])
def test_cuts_agree(name: str) -> None:
    _, X, y = GAMES[name]
    whole, parts = fresh(name, "cpu"), fresh(name, "cpu")
    p = whole.predict_then_learn(X, y)
    first = {"classes": np.unique(y)}
    q = [parts.predict_then_learn(X[some], y[some], **first) for some in (slice(0, 130), slice(130, None))]
    np.testing.assert_allclose(np.concatenate(q), p, atol=1e-10)
    rows = fresh(name, "cpu").begin(X.shape[1], classes=np.unique(y))
    for x, label in zip(X[:40], y[:40], strict=True):
        rows.learn_one(x, label)  # one row at a time, on the processor
    np.testing.assert_allclose(rows.predict_proba_one(X[40]), p[40], atol=1e-10)


@needs_torch
def test_members_of_an_ensemble() -> None:
    _, X, y = GAMES["AIOLI"]
    here, there = (Mixture([AIOLI(radius=r, device=device) for r in (1.0, 3.0)]) for device in (None, "cpu"))
    np.testing.assert_allclose(there.predict_then_learn(X, y), here.predict_then_learn(X, y), atol=1e-10)
    for one, other in zip(here.estimators_, there.estimators_, strict=True):
        np.testing.assert_allclose(other.state_.P, one.state_.P, atol=1e-10)


@needs_torch
def test_rows_beyond_the_digits_of_p_go_on_by_its_root() -> None:
    _, X, y = GAMES["AIOLI"]
    X = X * np.where(np.arange(len(X)) > 300, 1e3, 1.0)[:, None]
    here, there = AIOLI(radius=3.0), AIOLI(radius=3.0, device="cpu")
    np.testing.assert_allclose(there.predict_then_learn(X, y), here.predict_then_learn(X, y), atol=1e-6)
    assert there.state_.tally[devices.ROOT] == pytest.approx(here.state_.tally[devices.ROOT])


@needs_torch
def test_a_failing_device_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, X, y = GAMES["AIOLI"]
    learner = fresh("AIOLI", "cpu").partial_fit(X[:300], y[:300])
    before = learner.to_bytes()
    correct, calls = devices.Resident._correct, []

    def fail(self: Any, *given: Any) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        correct(self, *given)

    monkeypatch.setattr(devices.Resident, "_correct", fail)
    with pytest.raises(RuntimeError, match="CUDA error"):
        learner.partial_fit(X[300:], y[300:])
    assert learner.to_bytes() == before
    monkeypatch.undo()
    learner.partial_fit(X[300:], y[300:])
    np.testing.assert_allclose(learner.state_.w, fresh("AIOLI", "cpu").fit(X, y).state_.w, atol=1e-10)


def test_unknown_devices_are_refused_before_anything_changes() -> None:
    learner = AIOLI(device="a quantum computer")
    with pytest.raises(ValueError, match=r"device='a quantum computer' (needs PyTorch|cannot be used)"):
        learner.partial_fit(WIDE, GAMES["AIOLI"][2])
    assert not hasattr(learner, "state_")


@pytest.mark.skipif("cuda" in DEVICES, reason="there is a GPU")
def test_without_a_gpu_cuda_is_refused_and_models_of_one_still_forecast() -> None:
    _, X, y = GAMES["AIOLI"]
    with pytest.raises(ValueError, match="device='cuda'"):
        AIOLI(device="cuda").partial_fit(X, y)
    learner = AIOLI(radius=3.0).fit(X, y)
    said = learner.predict_proba(X)
    np.testing.assert_array_equal(learner.set_params(device="cuda").predict_proba(X), said)


def test_a_file_whose_device_is_no_name_is_refused(tmp_path: Path) -> None:
    _, X, y = GAMES["AIOLI"]
    learner = AIOLI(radius=3.0).fit(X, y)
    learner.params_["device"] = 50
    learner.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="device=50 is not supported"):
        regretless.load(tmp_path / "model.npz")

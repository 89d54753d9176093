"""Model files of every released version load in this one, and forecast what they forecast then."""

from __future__ import annotations

import json

import numpy as np
import pytest

import kept_models
import regretless
from regretless import load

FOLDERS = sorted(kept_models.DATA.glob("models-*"))
SAID = {folder.name: json.loads((folder / "said.json").read_text()) for folder in FOLDERS}
MODELS = [(folder, name) for folder in SAID for name in SAID[folder]]


def test_this_version_is_kept():
    assert f"models-{regretless.__version__}" in SAID
    for folder in FOLDERS:
        assert {path.stem for path in folder.glob("*.*")} == {*SAID[folder.name], "said"}


@pytest.mark.parametrize(("folder", "name"), MODELS)
def test_a_kept_model_forecasts_as_then(folder, name):
    said = SAID[folder][name]
    file = kept_models.DATA / folder / name
    from_bytes = getattr(regretless, name.partition("-")[0]).from_bytes
    for learner in (load(file.with_suffix(".npz")), from_bytes(file.with_suffix(".bytes").read_bytes())):
        assert np.allclose(kept_models.forecasts(name, learner), said["forecasts"], rtol=1e-9, atol=1e-12)
        found = kept_models.certificate(learner)
        assert found == (None if said["certificate"] is None else pytest.approx(said["certificate"], rel=1e-9))


@pytest.mark.parametrize(("folder", "name"), MODELS)
def test_a_kept_model_still_learns(folder, name):
    learner = load(kept_models.DATA / folder / f"{name}.npz")
    if name == "BanditMulticlass":
        learner.feedback(kept_models.ROWS[0], learner.act(kept_models.ROWS[0])[0], True)
        return
    columns = name.endswith("columns")
    before = kept_models.forecasts(name, learner)
    rows = kept_models.PEOPLE[:8] if columns else kept_models.ROWS
    labels = getattr(learner, "classes_", np.array([1.0, -1.0]))[np.arange(8) % 2]
    learner.partial_fit(rows, labels)
    assert not np.allclose(kept_models.forecasts(name, learner), before)

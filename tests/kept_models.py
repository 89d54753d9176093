"""Write the model files that later versions must load: `python tests/kept_models.py`, once per release.

They go to tests/data/models-VERSION: of each learner its file, its bytes, and what it forecasts for `ROWS`, with its
certificate. Files of a released version are never written again; `test_kept_models.py` loads those of all versions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import regretless
from regretless import (
    AIOLI,
    FOLKLORE,
    OGD,
    BanditMulticlass,
    KernelAIOLI,
    LinearizedFTRL,
    Mixture,
    MondrianForest,
    NoCertificate,
    OnlineBoosting,
    OnlineLogisticRegression,
    VovkAzouryWarmuth,
)

DATA = Path(__file__).with_name("data")
_rng = np.random.default_rng(7)
X = _rng.uniform(-1, 1, size=(60, 3)) / 2
TWO = np.where(X[:, 0] + 0.3 * _rng.normal(size=60) > 0, "yes", "no")
THREE = np.array(["low", "middle", "high"])[np.digitize(X[:, 1] + 0.1 * _rng.normal(size=60), [-0.15, 0.15])]
NUMBERS = X @ [1.0, -2.0, 0.5] + 0.1 * _rng.normal(size=60)
ROWS = _rng.uniform(-1, 1, size=(8, 3)) / 2
PEOPLE = [{"age": 40 + 50 * a, "country": "fr" if b > 0 else "de", "paid": None if c > 0.4 else c} for a, b, c in X]


def learners() -> dict[str, Any]:
    """One learner per kind of state, after its rows."""
    bandit = BanditMulticlass(FOLKLORE(radius=3.0, feature_bound=1.0), n_classes=3, exploration=0.3, random_state=0)
    for x in X:
        action, _ = bandit.act(x)
        bandit.feedback(x, action, action == int(x[0] > 0))
    return {
        "OnlineLogisticRegression": OnlineLogisticRegression().fit(X, TWO),
        "OnlineLogisticRegression-columns": OnlineLogisticRegression(effort="low").fit(PEOPLE, THREE),
        "AIOLI": AIOLI(radius=3.0).fit(X, TWO),
        "FOLKLORE": FOLKLORE(radius=3.0).fit(X, THREE),
        "VovkAzouryWarmuth": VovkAzouryWarmuth().fit(X, NUMBERS),
        "OGD": OGD(radius=3.0).fit(X, TWO),
        "LinearizedFTRL": LinearizedFTRL().fit(X, TWO),
        "KernelAIOLI": KernelAIOLI(radius=3.0).fit(X, TWO),
        "MondrianForest": MondrianForest(n_estimators=2, random_state=0).fit(X, THREE),
        "Mixture": Mixture([AIOLI(radius=1.0), AIOLI(radius=10.0)]).fit(X, TWO),
        "OnlineBoosting": OnlineBoosting(n_estimators=2).fit(X, THREE),
        "BanditMulticlass": bandit,
    }


def forecasts(name: str, learner: Any) -> list[Any]:
    """What the learner forecasts for the rows."""
    if name == "BanditMulticlass":
        return learner.estimator_.predict_proba(ROWS).tolist()
    if name == "OnlineLogisticRegression-columns":
        return learner.predict_proba(PEOPLE[:8]).tolist()
    return (learner.predict_proba if hasattr(learner, "predict_proba") else learner.predict)(ROWS).tolist()


def certificate(learner: Any) -> float | None:
    """The learner's certificate, or None where it has none."""
    try:
        return float(learner.regret_certificate())
    except (AttributeError, NoCertificate):
        return None


def main() -> None:
    """Write the files of this version."""
    folder = DATA / f"models-{regretless.__version__}"
    folder.mkdir(parents=True, exist_ok=True)
    said = {}
    for name, learner in learners().items():
        learner.save(folder / f"{name}.npz")
        (folder / f"{name}.bytes").write_bytes(learner.to_bytes())
        said[name] = {"forecasts": forecasts(name, learner), "certificate": certificate(learner)}
    (folder / "said.json").write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()

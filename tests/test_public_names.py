"""The public names: each is found, is documented where the docs say, and costs nothing before its first use."""

from __future__ import annotations

import re
import subprocess
import sys
import xml
from pathlib import Path
from types import ModuleType

import pytest

import regretless
from regretless.core.first_import import StandIn, put_off

MODULES = ("bounds", "domains", "hindsight", "losses", "plots", "streams")
BASE_CLASSES = ("OnlineLearner", "OnlineClassifier", "OnlineRegressor")
PAGES = [Path("README.md"), Path("CONTRIBUTING.md"), *Path("docs").rglob("*.md"), *Path("src").rglob("*.py")]


@pytest.mark.parametrize("name", regretless.__all__)
def test_every_public_name_resolves(name):
    assert getattr(regretless, name) is not None
    assert name in dir(regretless)


def test_modules_and_base_classes_are_public():
    for name in MODULES:
        assert name in regretless.__all__ and isinstance(getattr(regretless, name), ModuleType)
    for name in BASE_CLASSES:
        assert name in regretless.__all__ and isinstance(getattr(regretless, name), type)
    assert issubclass(regretless.OnlineClassifier, regretless.OnlineLearner)
    assert regretless.bounds.mixture(prior=1.0) == 0.0


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'regretless' has no attribute 'nothing'"):
        regretless.nothing  # noqa: B018


def test_names_in_the_docs_exist():
    """`regretless.x` and `regretless.bounds.x`, as the pages and docstrings spell them."""
    spelled = {
        name for page in PAGES for name in re.findall(r"`(regretless(?:\.\w+)+)", page.read_text(encoding="utf-8"))
    }
    assert "regretless.bounds.aioli" in spelled
    for name in sorted(spelled):
        found = regretless
        for part in name.split(".")[1:]:
            if not hasattr(found, part):
                __import__(f"{found.__name__}.{part}")
            found = getattr(found, part)


def test_import_is_light():
    code = "import sys, regretless; print([m for m in ('numpy', 'numba', 'sklearn', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[]\n", done.stderr


def test_a_first_forecast_imports_nothing_that_it_does_not_need():
    code = """
import sys
import numpy as np
import regretless
for name in ("AIOLI", "OnlineLogisticRegression"):
    learner = getattr(regretless, name)()
    learner.partial_fit(np.eye(2), [0, 1])
    learner.predict_proba(np.eye(2))
    unused = {"scipy.stats", "scipy.special", "scipy.optimize", "numpy.f2py", "numpy.testing", "pandas", "matplotlib"}
    assert not sys.modules.keys() & (unused | {"rich", "torch"}), (name, sys.modules.keys() & unused)
import sklearn.utils.fixes
assert sklearn.utils.fixes._mode(np.array([1, 2, 2])).mode[0] == 2  # which uses scipy.stats
assert sys.modules["scipy.stats"].norm.cdf(0.0) == 0.5
import pandas
assert learner.predict_proba(pandas.DataFrame(np.eye(2))).shape == (2, 2)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_a_module_that_is_put_off_can_be_used_meanwhile(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with put_off("colorsys"):
        import colorsys

        assert isinstance(colorsys, StandIn) and sys.modules["colorsys"] is colorsys
        assert colorsys.rgb_to_hsv(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
        assert not isinstance(sys.modules["colorsys"], StandIn)
    with put_off("colorsys"):  # imported already: nothing is put off
        assert not isinstance(sys.modules["colorsys"], StandIn)
    monkeypatch.delitem(sys.modules, "colorsys")
    with put_off("colorsys"):
        assert isinstance(sys.modules["colorsys"], StandIn)
    assert "colorsys" not in sys.modules


def test_a_part_of_a_package_that_is_put_off_is_a_part_of_it_meanwhile(monkeypatch):
    monkeypatch.delitem(sys.modules, "xml.sax", raising=False)
    monkeypatch.delattr(xml, "sax", raising=False)
    with put_off("xml.sax"):
        from xml import sax

        assert isinstance(xml.sax, StandIn)
    assert "xml.sax" not in sys.modules and not hasattr(xml, "sax")
    assert sax.SAXException.__name__ == "SAXException"  # which imports the module
    assert not isinstance(xml.sax, StandIn)


@pytest.mark.slow
def test_a_first_import_leaves_the_garbage_collector_as_it_was():
    for setting in ("enable", "disable"):
        program = (
            f"import gc; gc.{setting}(); was = gc.isenabled(); import regretless; regretless.AIOLI\n"
            "try: regretless.nothing\nexcept AttributeError: pass\n"
            "assert gc.isenabled() == was"
        )
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

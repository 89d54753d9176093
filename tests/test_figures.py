"""Every figure in its quick form: its files, the same numbers again, and what it is there to show."""

from __future__ import annotations

import csv
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import reference
from regretless.figures import ABOUT, module
from regretless.figures.common import Table, Work, save

pytestmark = pytest.mark.pages

COLUMNS = {
    "aioli-1": "stream learner x margin",
    "aioli-2": "n radius learner regret_plus regret_minus regret bound",
    "gaf-1": "data learner lambda beta orders rows quartile_1 median quartile_3",
    "ogd-erm-fails": "learner round weight loss regret bound",
    "perceptron-bound": "panel stream level rows mistakes_quartile_1 mistakes_median mistakes_quartile_3 "
    "bound_quartile_1 bound_median bound_quartile_3 largest_ratio",
    "ogd-rates": "game rounds mean quartile_1 median quartile_3 bound",
    "mda-dimension": "varied mirror functions t edge mean quartile_1 median quartile_3 bound",
    "mda-lower-bound": "varied method functions t edge mean lower upper",
    "folklore-bandit": "panel learner rounds exploration mean quartile_1 median quartile_3 bound",
    "folklore-boosting": "panel estimator what stages quartile_1 median quartile_3",
    "curvature": "classes logit_bound L constant kappa best_possible ratio",
    "certificate": "stream learner rows regret_low regret_high certificate bound",
}
DOCS = Path(__file__).parent.parent / "docs" / "figures"


@cache
def quick(name: str) -> Table:
    figure = module(name)
    try:
        return figure.compute(figure.QUICK, 0, Work())
    except OSError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", ABOUT)
def test_files_and_columns(name, tmp_path):
    table = quick(name)
    paths = save(name, tmp_path, table, module(name).draw(table))
    assert [path.name for path in paths] == [f"{name}.csv", f"{name}.png", f"{name}.svg"]
    with paths[0].open() as file:
        header, *rows = list(csv.reader(file))
    assert header == COLUMNS[name].split()
    assert len(rows) == len(table.rows) > 5
    assert paths[1].read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in paths[2].read_text()


@pytest.mark.parametrize("name", ["mda-dimension"])
def test_any_number_of_processes_writes_the_same_bytes(name, tmp_path):
    figure = module(name)
    quick(name).write(tmp_path / "one")
    figure.compute(figure.QUICK, 0, Work(jobs=2)).write(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_another_seed_gives_other_numbers():
    figure = module("mda-dimension")
    assert figure.compute(figure.QUICK, 1, Work()) != quick("mda-dimension")


@pytest.mark.parametrize("name", ABOUT)
def test_every_figure_has_a_page_in_the_gallery(name):
    assert f"({name}.md)" in (DOCS / "README.md").read_text()
    assert f"({name}.png)" in (DOCS / f"{name}.md").read_text()
    assert (DOCS / f"{name}.png").stat().st_size < 60_000


# ---------------------------------------------------------------------- what each is there to show


def slope(x, y):
    """Of the line through the logarithms."""
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def test_aioli_1_only_the_proper_forecast_is_a_line():
    for _, rows in quick("aioli-1").each("stream"):
        for learner, curve in rows.each("learner"):
            x, margin = curve["x"], curve["margin"]
            np.testing.assert_allclose(margin, -margin[::-1], atol=1e-6)  # there is no intercept
            bend = np.abs(margin - np.polyval(np.polyfit(x, margin, 1), x)).max() / np.ptp(margin)
            assert (bend < 1e-8) == (learner == "FTRL")
            assert bend < 1e-8 or bend > 0.02


def test_aioli_2_ftrl_grows_faster_than_aggregation_and_aioli_keeps_its_bound():
    table = quick("aioli-2")
    ftrl, foster = (table.where(learner=name)["regret"] for name in ("FTRL, λ = 1", "Foster et al. 2018"))
    assert slope([100, 1000], ftrl[1:]) > 0.4 > slope([100, 1000], foster[1:])
    theory = table.where(learner="AIOLI, λ = 1/B²")
    assert (theory["regret"] <= theory["bound"]).all()
    assert (theory["regret"] <= ftrl).all()
    assert theory["regret"][-1] < 0, "better than every linear forecast of the ball"


def test_gaf_1_second_order_is_ahead_and_gaf_steadier_early():
    table = quick("gaf-1")
    gaf, ons, ogd = (table.where(learner=name) for name in ("GAF", "ONS", "OGD"))
    assert gaf["median"][-1] < ons["median"][-1] < ogd["median"][-1]
    early = (gaf["rows"] > 10) & (gaf["rows"] < 100)
    assert (gaf["quartile_3"] < ons["quartile_1"])[early].mean() > 0.5


def test_erm_fails_and_regularized_it_does_not():
    table = quick("ogd-erm-fails")
    leader = table.where(learner="follow the leader (ERM)")
    np.testing.assert_allclose(leader["loss"], leader["round"] - 1.0, atol=1e-6)  # T - 1, as the notes say
    assert slope(leader["round"][-10:], leader["regret"][-10:]) == pytest.approx(1.0, abs=0.02)
    for name in ("regularized leader", "projected OGD"):
        rows = table.where(learner=name)
        assert (rows["regret"] <= rows["bound"]).all()
        assert slope(rows["round"][-10:], rows["regret"][-10:]) == pytest.approx(0.5, abs=0.1)


def test_the_perceptron_stays_below_its_bound_and_can_reach_it():
    table = quick("perceptron-bound")
    assert (table["largest_ratio"] <= 1 + 1e-9).all()
    worst = table.where(stream="orthonormal rows")
    np.testing.assert_allclose(worst["mistakes_median"], worst["bound_median"])
    assert (worst["mistakes_median"] == worst["rows"]).all()
    random = table.where(panel="margin", stream="random rows")
    assert (random["mistakes_median"] < random["bound_median"] / 2).all()


def test_rates_of_gradient_descent():
    table = quick("ogd-rates")
    linear, strong, same = (rows for _, rows in table.each("game"))
    for rows in (linear, strong, same):
        assert (rows["quartile_3"] <= rows["bound"]).all()
    assert slope(linear["rounds"], linear["mean"]) == pytest.approx(0.5, abs=0.1)
    a_unit_of_ln_t = np.polyfit(np.log(strong["rounds"]), strong["mean"], 1)[0]
    assert a_unit_of_ln_t == pytest.approx(1.0, abs=0.15)  # variance 1, each step is the mean so far
    assert slope(strong["rounds"], strong["mean"]) < 0.25 < slope(same["rounds"], same["mean"])


def test_excess_risk_follows_the_root_of_ln_m():
    table = quick("mda-dimension")
    entropy, euclidean = (rows for _, rows in table.each("mirror"))
    assert (entropy["mean"] <= entropy["bound"]).all()
    many = entropy["functions"] >= 30
    assert (entropy["mean"] < euclidean["mean"])[many].all()
    against_m, against_t = (rows for _, rows in entropy.each("varied"))
    powers = [slope(against_m["functions"], rows.where(varied="M")["mean"]) for rows in (entropy, euclidean)]
    assert powers[0] < 0.35 < powers[1], "sqrt(ln M) from 2 to 300 is a power of 0.21, and sqrt(M) one of 0.5"
    assert slope(against_t["t"], against_t["mean"]) == pytest.approx(-0.5, abs=0.15)


def test_mda_lower_bound_no_method_is_much_better_than_theorem_1():
    table = quick("mda-lower-bound")
    for _, rows in table.each("varied"):
        mda, best = (rows.where(method=name) for name in ("mirror descent with averaging", "the best possible method"))
        assert (mda["lower"] <= best["mean"]).all(), "not even the best method is below the lower bound"
        assert (best["mean"] <= mda["mean"]).all()
        assert (mda["mean"] <= mda["upper"]).all()
        large = rows["functions"] >= 30  # of the same order: at most a factor 8 apart
        assert (rows["upper"] <= 8 * rows["lower"])[large].all()


def test_bandit_mistakes_stay_below_the_theorem():
    table = quick("folklore-bandit")
    horizons = table.where(panel="horizon")
    assert (horizons["mean"] <= horizons["bound"]).all()
    printed = horizons["exploration"] * horizons["rounds"]  # sqrt(K T R), where gamma = sqrt(K R / T) is below 1
    assert (horizons["mean"] <= printed).all(), "here even as printed"
    over_time = table.where(panel="time", learner="FOLKLORE's reduction")
    assert over_time["mean"][-1] < 0.5, "it learns: chance is 2/3"


def test_boosting_makes_weak_learners_strong():
    errors = quick("folklore-boosting").where(panel="error")
    for what in ("label drawn, online", "last stage, held out"):
        stumps = errors.where(estimator="stump", what=what)["median"]
        assert (np.diff(stumps) < 0).all()
    assert (errors.where(what="bound")["quartile_1"] > errors.where(what="label drawn, online")["quartile_3"]).all()
    edges = quick("folklore-boosting").where(panel="edge")
    assert (edges["median"] > 0).all()


def test_curvature_is_below_the_best_possible_where_it_is_proved():
    table = quick("curvature")
    for name in ("sharp", "gaf", "aioli"):
        rows = table.where(constant=name)
        assert (rows["kappa"] <= rows["best_possible"] * (1 + 1e-6)).all()
    assert (table.where(constant="folklore")["ratio"] > 1.4).all()
    assert (table.where(constant="sharp")["ratio"] > 0.75).all()
    for L, best in zip(table["L"][::12], table["best_possible"][::12], strict=True):
        assert best == pytest.approx(reference.best_curvature(L), rel=1e-4)


@pytest.mark.parametrize(("C", "best"), [(1.0, 0.4137), (2.0, 0.2888), (5.0, 0.1230), (10.0, 0.0580)])
def test_the_best_possible_curvature_of_two_classes(C, best):
    assert module("curvature").best_possible(2 * C) == pytest.approx(best, abs=1e-4)


def test_certificates_lie_between_regret_and_bound():
    table = quick("certificate")
    assert len(table.rows) == 10 * len(table.each("rows"))
    assert (table["regret_high"] <= table["certificate"] + 1e-9).all()
    assert (table["certificate"] <= table["bound"] + 1e-9).all()
    assert (table["regret_high"] - table["regret_low"] < 1e-4).all()
    aioli = table.where(learner="AIOLI", stream="adversary")
    assert aioli["certificate"][-1] < 1.3 * aioli["regret_low"][-1], "nearly tight against an adversary"


# ---------------------------------------------------------------------- the command


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from regretless.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, "figure", *arguments], capture_output=True, text=True, timeout=600
    )


def test_list_shows_every_figure():
    done = command("list")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(ABOUT)


def test_a_quick_figure_by_the_command(tmp_path):
    done = command("curvature", "--quick", "--jobs", "1", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].count(str(tmp_path)) == 3
    quick("curvature").write(tmp_path / "here")
    assert (tmp_path / "curvature.csv").read_bytes() == (tmp_path / "here").read_bytes()
    assert "\x1b" not in done.stdout + done.stderr, "no bar and no colours where there is no terminal"


def test_an_unknown_figure_is_a_usage_error_that_lists_them():
    done = command("aioli-3")
    assert done.returncode == 2
    assert all(name in done.stderr for name in ABOUT)


def test_missing_data_is_said_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETLESS_DATA", str(tmp_path))
    monkeypatch.setenv("REGRETLESS_CACHE_DIR", str(tmp_path / "cache"))
    for scheme in ("http_proxy", "https_proxy"):  # nowhere to be reached
        monkeypatch.setenv(scheme, "http://127.0.0.1:9")
    done = command("gaf-1", "--quick", "--out", str(tmp_path))
    assert done.returncode == 3
    assert "vehicle.scale" in done.stderr

"""One key's rows as an engine brings them: order, late labels, bad rows, files of idle keys. No engine is needed."""

from __future__ import annotations

import numpy as np
import pytest

from regretless import AIOLI, VovkAzouryWarmuth
from regretless.scale.keyed import MOST_WAITING, Held, KeyedGame, put_away, take_back
from regretless.scale.starting import start_of

pd = pytest.importorskip("pandas")
FEATURES = ("a", "b")


def game_of(learner="AIOLI(radius=2)", classes=("no", "yes"), id=None, features=FEATURES):
    start = start_of(learner, features, classes)
    return KeyedGame(start.to_bytes(), "key", tuple(features), "y", "t", id)


def rows_of(n, seed=0, first=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.normal(size=(n, 2)), columns=list(FEATURES))
    return rows.assign(key="k", t=np.arange(first, first + n), y=rng.choice(["no", "yes"], n))


def test_rows_in_any_order_and_division_give_the_same_bits():
    rows, game = rows_of(60), game_of()
    rows["t"] //= 3  # rows of equal order
    lines, held = game.play("k", rows, None)
    sorted_rows = rows.sort_values(["t", *FEATURES])
    one = AIOLI(radius=2).begin(list(FEATURES), ["no", "yes"])
    assert lines.forecasts == one.predict_then_learn(sorted_rows[list(FEATURES)], sorted_rows.y).tolist()
    assert lines.errors == [None] * 60
    assert lines.certificates == [None] * 59 + [one.regret_certificate()]
    again, parts = None, []
    for begin in range(0, 20, 5):
        part = rows[(rows.t >= begin) & (rows.t < begin + 5)].sample(frac=1.0, random_state=begin)
        some, again = game.play("k", part, again)
        parts += some.forecasts
    assert parts == lines.forecasts and again == held
    assert AIOLI.from_bytes(held.model).to_bytes() == one.to_bytes()


def test_bad_rows_are_named_and_change_nothing():
    rows, game = rows_of(12), game_of()
    spoilt = rows.copy()
    spoilt.loc[2, "a"] = np.inf
    spoilt.loc[3, "y"] = "maybe"
    spoilt["y"] = spoilt.y.astype(object).where(spoilt.t != 4, None)
    spoilt["t"] = spoilt.t.astype("Int64").where(spoilt.t != 5, None)
    lines, held = game.play("k", spoilt, None)
    good = rows.drop([2, 3, 4, 5])
    _, wanted = game.play("k", good, None)
    assert held == wanted
    errors = {t: error for t, error in zip(lines.rows.t, lines.errors, strict=True) if error}
    assert "key 'k', t=2" in errors[2] and "Input contains NaN or inf" in errors[2]
    assert "label 'maybe' is not one of the classes" in errors[3] and "rows need a label" in errors[4]
    assert "t is missing" in next(error for t, error in errors.items() if t is pd.NA)
    assert len(lines.forecasts) == 12 and sum(each is None for each in lines.forecasts) == 4


def test_rows_before_the_last_one_are_refused():
    game = game_of()
    _, held = game.play("k", rows_of(5, first=10), None)
    lines, after = game.play("k", rows_of(2, first=13), held)
    assert "key 'k', t=13: a row with t=14 is learned already" in lines.errors[0] and lines.errors[1] is None
    assert after.last == 14
    late, same = game.play("k", rows_of(1, first=3), after)
    assert late.errors[0] and same == after


@pytest.mark.parametrize("key", [None, float("nan"), pd.NA], ids=["None", "NaN", "NA"])
def test_missing_keys_are_refused(key):
    lines, held = game_of().play(key, rows_of(3), None)
    assert held is None and all("the key is missing" in error for error in lines.errors)


def test_labels_find_their_rows():
    game = game_of(id="id")
    rows = rows_of(6).assign(id=range(6))
    asked, held = game.play("k", rows.assign(y=None), None)
    assert asked.forecasts == [[0.5, 0.5]] * 6 and asked.errors == [None] * 6
    labels = rows.assign(a=np.nan, b=np.nan, t=rows.t + 10)
    labels.loc[6] = [np.nan, np.nan, "k", 20, "yes", 99]
    late, held = game.play("k", labels.iloc[::-1], held)
    assert late.errors == ["key 'k', t=20: id=99: no row with this id waits for a label. It was learned already, or "
                           "came to another key."]  # fmt: skip
    one = AIOLI(radius=2).begin(list(FEATURES), ["no", "yes"]).partial_fit(rows[list(FEATURES)], rows.y)
    assert AIOLI.from_bytes(held.model).to_bytes() == one.to_bytes() and held.waiting == b""
    twice, _ = game.play("k", pd.concat([rows.iloc[:1].assign(t=30, y=None)] * 2), held)
    assert [error is None for error in twice.errors] == [True, False] and "waits for its label already" in twice.errors[
        1
    ]
    nameless, _ = game.play("k", rows.iloc[:1].assign(t=30, y=None, id=None), held)
    assert "id is missing" in nameless.errors[0]


def test_waiting_rows_have_a_limit():
    game = game_of(id="id")
    rows = rows_of(MOST_WAITING + 1).assign(y=None, id=range(MOST_WAITING + 1))
    _, held = game.play("k", rows.iloc[:-1], None)
    lines, after = game.play("k", rows.iloc[-1:], held)
    assert "the limit is 10,000" in lines.errors[0] and after.waiting == held.waiting


def test_a_regressor_forecasts_numbers():
    rows = rows_of(10).assign(y=np.arange(10.0))
    lines, _ = game_of(VovkAzouryWarmuth(), None).play("k", rows, None)
    one = VovkAzouryWarmuth().begin(list(FEATURES))
    assert lines.forecasts == one.predict_then_learn(rows[list(FEATURES)], rows.y).tolist()


def test_damaged_states_are_left_as_they_are():
    game = game_of()
    _, held = game.play("k", rows_of(5), None)
    damaged = held._replace(model=held.model[:-3] + b"abc")
    lines, after = game.play("k", rows_of(2, first=9), damaged)
    assert after is damaged
    assert all("key 'k': its state in the checkpoint cannot be used" in error for error in lines.errors)
    assert all("Restore the checkpoint" in error for error in lines.errors)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (game_of("AIOLI(radius=3)"), "parameters"),
        (game_of("FOLKLORE"), "learner"),
        (game_of(classes=("yes", "no")), "classes"),
        (game_of(features=("b", "a")), "features"),
    ],
    ids=["parameters", "learner", "classes", "features"],
)
def test_a_job_with_another_learner_is_stopped(other, what):
    _, held = game_of().play("k", rows_of(5), None)
    with pytest.raises(ValueError, match=f"key 'k': the checkpoint has the {what} .*Start the job as before"):
        other.play("k", rows_of(2, first=9), held)


@pytest.mark.parametrize("key", ["a/b", 5, "ä" * 100, ""])
@pytest.mark.parametrize("last", [7, 0.1, pd.Timestamp("2024-05-06 07:08:09.123456"), "b"], ids=str)
def test_idle_keys_come_back_from_their_files(tmp_path, key, last):
    pytest.importorskip("pyarrow")
    held = Held(b"model", last, b"waiting")
    assert take_back(str(tmp_path), key) is None
    put_away(str(tmp_path), key, held)
    put_away(str(tmp_path), key, held)
    assert take_back(str(tmp_path), key) == held
    assert len([*tmp_path.glob("*/*")]) == 1
    [path] = tmp_path.glob("*/*")
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"cannot be used.*Restore it from a copy, or delete it"):
        take_back(str(tmp_path), key)

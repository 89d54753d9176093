"""Log loss, errors, Brier score and time per row of learners that are not linear, against forests, VW and LightGBM.

    REGRETLESS_DATA=folder python -m benchmarks.nonlinear --cache nonlinear.json --write
    REGRETLESS_DATA=folder python -m benchmarks.nonlinear --streams letter Sine --rows 500

Every row is forecast before its label is used. Scores of rivals are cached in the file given by --cache after each
rival, so that an interrupted run continues where it ended; ours are always measured. For ratios of times, start with no
cache. Everybody plays a stream once: a second play may be faster, because the process already has the memory. The last
table leaves out one kind of member of effort="high" at a time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from benchmarks import page
from benchmarks.machine import processor
from benchmarks.quality import Rows, first, logistic, mean_loss, shuffled
from benchmarks.timing import progress
from regretless import MondrianForest, OnlineLogisticRegression, load_dataset
from regretless.core.types import Array
from regretless.learners.logistic import settings
from regretless.learners.logistic.effort import Sizes
from regretless.learners.logistic.members import Members

ROWS = 4_000
ABLATION_ROWS = 2_000
WIDE_ROWS = 1_000  # of usps, whose 256 columns take River and VW many milliseconds per row
SEED = 0
UNIFORM = 0.01  # the share of the uniform forecast in the smoothed loss of rivals
SMOOTHED = f"{100 * UNIFORM:g} %"
GROWTH = 1.25  # LightGBM is fitted again when there are so many times the rows of its last fit
FIRST_FIT = 50  # rows
BEGIN, END = "<!-- nonlinear: begin, written by python -m benchmarks.nonlinear --write -->", "<!-- nonlinear: end -->"


# ---------------------------------------------------------------------- streams: number of rows -> rows in order


def public(name: str, n: int) -> Rows:
    data = load_dataset(name, download=False)
    y = np.searchsorted(data.classes, np.asarray(data.y))
    X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    if name == "elec2":  # in time order
        return first(Rows(X, y, len(data.classes)), n)
    return first(shuffled(X, y, SEED), n)


def usps(n: int) -> Rows:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(Path(os.environ["REGRETLESS_DATA"]) / "usps-zip.gz"))
    return first(shuffled(X.toarray(), y, SEED), min(n, WIDE_ROWS))


def drawn(make: Callable[[Any, int], Any], n: int) -> Rows:
    """The first rows of one of River's generators; columns in the order of the first row."""
    from river.datasets import synth

    pairs = list(itertools.islice(make(synth, n), n))
    columns = list(pairs[0][0])
    labels, y = np.unique([int(label) for _, label in pairs], return_inverse=True)
    return Rows(np.array([[float(x[each]) for each in columns] for x, _ in pairs]), y, labels.size)


def agrawal_drift(synth: Any, n: int) -> Any:
    """From the first function of Agrawal to the fourth, in the middle of the stream."""
    before, after = (synth.Agrawal(classification_function=i, seed=SEED) for i in (0, 3))
    return synth.ConceptDriftStream(before, after, position=n // 2, width=n // 10, seed=SEED)


PUBLIC = ("phishing", "elec2", "letter", "pendigits", "satimage", "segment", "vehicle", "shuttle")
GENERATORS: dict[str, Callable[[Any, int], Any]] = {
    "RandomRBF": lambda synth, n: synth.RandomRBF(seed_model=SEED, seed_sample=SEED),
    "RandomRBFDrift": lambda synth, n: synth.RandomRBFDrift(seed_model=SEED, seed_sample=SEED, change_speed=0.001),
    "Agrawal": lambda synth, n: synth.Agrawal(seed=SEED),
    "AgrawalDrift": agrawal_drift,
    "SEA": lambda synth, n: synth.SEA(seed=SEED, noise=0.1),
    "LED": lambda synth, n: synth.LED(seed=SEED, noise_percentage=0.1, irrelevant_features=True),
    "Waveform": lambda synth, n: synth.Waveform(seed=SEED),
    "Hyperplane": lambda synth, n: synth.Hyperplane(seed=SEED, mag_change=0.001),
    "Sine": lambda synth, n: synth.Sine(seed=SEED),
    "Mixed": lambda synth, n: synth.Mixed(seed=SEED),
}
STREAMS: dict[str, Callable[[int], Rows]] = {
    **{name: lambda n, name=name: public(name, n) for name in PUBLIC},
    "usps": usps,
    **{name: lambda n, make=make: drawn(make, n) for name, make in GENERATORS.items()},
}
MEMBERS, STACK, NEITHER = "members and sizes", "the stack alone", ""  # see docs/online-logistic-regression.md
CHOSEN_ON = dict.fromkeys(("vehicle", "segment", "elec2", "satimage"), MEMBERS) | dict.fromkeys(
    ("pendigits", "letter", "phishing", "shuttle"), STACK
)


# ---------------------------------------------------------------------- scores


class Score(NamedTuple):
    loss: float
    smoothed: float  # the loss of (1 - UNIFORM) p + UNIFORM / K
    error: float
    brier: float  # the squared distance of the forecast to the label's corner of the simplex
    microseconds: float


def score(p: Array, rows: Rows, seconds: float) -> Score:
    n = rows.y.size
    of_label = p[np.arange(n), rows.y]
    return Score(
        mean_loss(of_label),
        mean_loss((1.0 - UNIFORM) * of_label + UNIFORM / rows.K),
        float(np.mean(p.argmax(axis=1) != rows.y)),
        float(np.mean(np.sum(p * p, axis=1) - 2.0 * of_label + 1.0)),
        1e6 * seconds / n,
    )


# ---------------------------------------------------------------------- contenders: rows -> score


def ours(learner: Callable[[], Any]) -> Callable[[Rows], Score]:
    def play(rows: Rows) -> Score:
        fresh, started = learner(), time.process_time()
        p = fresh.predict_then_learn(rows.X, rows.y, classes=list(range(rows.K)))
        return score(p, rows, time.process_time() - started)

    return play


def normalised(p: Array) -> Array:
    """Rows that sum to 1; the uniform forecast where a contender gave no class a probability."""
    p = np.maximum(np.nan_to_num(p), 0.0)
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / p.shape[1])


def river(make: Callable[[], Any]) -> Callable[[Rows], Score]:
    def play(rows: Rows) -> Score:
        model, p, started = make(), np.zeros((rows.y.size, rows.K)), time.process_time()
        for t, (values, label) in enumerate(zip(rows.X.tolist(), rows.y.tolist(), strict=True)):
            x = dict(enumerate(values))
            for known, share in model.predict_proba_one(x).items():
                p[t, known] = share
            model.learn_one(x, label)
        return score(normalised(p), rows, time.process_time() - started)

    return play


def adaptive_forest() -> Any:
    from river import forest

    return forest.ARFClassifier(n_models=10, seed=SEED)


def mondrian_forest() -> Any:
    from river import forest

    return forest.AMFClassifier(n_estimators=10, seed=SEED)


def adaptive_tree() -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeClassifier(seed=SEED)


def neighbours() -> Any:
    from river import neighbors

    distance = neighbors.KNNClassifier().engine.dist_func  # of the default engine, which has no seed
    return neighbors.KNNClassifier(engine=neighbors.SWINN(dist_func=distance, seed=SEED))


def wabbit(options: str) -> Callable[[Rows], Score]:
    def play(rows: Rows) -> Score:
        from vowpalwabbit import Workspace

        targets = (2 * rows.y - 1 if rows.K == 2 else rows.y + 1).tolist()
        lines = [
            f"{target} | " + " ".join(f"{j}:{v:.9g}" for j, v in enumerate(x) if v)
            for target, x in zip(targets, rows.X.tolist(), strict=True)
        ]
        many = f"--oaa {rows.K} --probabilities" if rows.K > 2 else ""
        model = Workspace(f"--loss_function=logistic {many} {options} --random_seed {SEED} --quiet")
        said, started = [], time.process_time()
        for line in lines:
            example = model.parse(line)
            model.learn(example)  # the prediction is that before the update
            said.append(example.get_prediction())
            model.finish_example(example)
        seconds = time.process_time() - started
        model.finish()
        p = np.array(said)
        return score(np.column_stack([expit(-p), expit(p)]) if rows.K == 2 else normalised(p), rows, seconds)

    return play


def boosted(rows: Rows) -> Score:
    """LightGBM with its default parameters, fitted to all rows so far at every 1.25 times as many."""
    from lightgbm import LGBMClassifier

    p, done, started = np.full((rows.y.size, rows.K), 1.0 / rows.K), FIRST_FIT, time.process_time()
    while done < rows.y.size:
        until = min(max(done + 1, int(GROWTH * done)), rows.y.size)
        if np.unique(rows.y[:done]).size > 1:
            model = LGBMClassifier(n_jobs=1, verbose=-1, random_state=SEED).fit(rows.X[:done], rows.y[:done])
            p[done:until] = 0.0
            p[done:until, model.classes_] = model.predict_proba(rows.X[done:until])
        done = until
    return score(p, rows, time.process_time() - started)


class Rival(NamedTuple):
    package: str
    play: Callable[[Rows], Score]


LOW, MEDIUM, HIGH, FOREST = "low", "medium", "high", "MondrianForest"
OURS: dict[str, Callable[[Rows], Score]] = {
    LOW: ours(lambda: OnlineLogisticRegression(effort="low")),
    MEDIUM: ours(lambda: OnlineLogisticRegression(effort="medium")),
    HIGH: ours(lambda: OnlineLogisticRegression(effort="high")),
    FOREST: ours(lambda: MondrianForest(n_estimators=10)),
}
ARF, AMF, LIGHTGBM = "ARF", "AMF", "LightGBM"
RIVALS = {
    ARF: Rival("river", river(adaptive_forest)),
    AMF: Rival("river", river(mondrian_forest)),
    "HAT": Rival("river", river(adaptive_tree)),
    "kNN": Rival("river", river(neighbours)),
    "VW -q ::": Rival("vowpalwabbit", wabbit("-q ::")),
    "VW --nn 10": Rival("vowpalwabbit", wabbit("--nn 10")),
    LIGHTGBM: Rival("lightgbm", boosted),
}


class Cache:
    """Scores of rivals, by stream, rows, version and rival."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.reused = path, 0
        self.scores: dict[str, list[float]] = json.loads(path.read_text()) if path and path.exists() else {}

    def play(self, stream: str, rows: Rows, name: str) -> Score:
        rival = RIVALS[name]
        key = f"{stream} | {rows.y.size} rows | {rival.package} {version(rival.package)} | {name}"
        if key not in self.scores:
            self.scores[key] = list(rival.play(rows))
            if self.path:
                self.path.write_text(json.dumps(self.scores, indent=0) + "\n")
        else:
            self.reused += 1
        return Score(*self.scores[key])


class Line(NamedTuple):
    stream: str
    rows: int
    features: int
    classes: int
    scores: dict[str, Score]


# ---------------------------------------------------------------------- one kind of member left out


KINDS = ("certified", "Newton", "AdaGrad", "splines", "Fourier", "products", "forest", "stack")
ABLATED = ("letter", "phishing", "satimage", "RandomRBF")


def without(kind: str, members: Members) -> Members:
    """The members but those of a kind, with the weights before the first row that these others had."""
    counts = {
        "certified": len(members.radii),
        "Newton": len(members.newton),
        "AdaGrad": len(members.rates),
        "frequencies": 1,
        "splines": len(members.splines),
        "Fourier": len(members.fourier),
        "products": len(members.products),
        "forest": int(members.trees > 0),
        "stack": int(members.stacks),
    }
    kept = np.repeat([each != kind for each in counts], list(counts.values()))
    sizes = Sizes(*members.sizes.tolist())
    changes: dict[str, dict[str, Any]] = {
        "certified": {"radii": members.radii[:0], "regularization": members.regularization[:0]},
        "Newton": {"newton": members.newton[:0]},
        "AdaGrad": {"rates": members.rates[:0]},
        "splines": {"splines": members.splines[:0], "sizes": np.array(sizes._replace(levels=0))},
        "Fourier": {"fourier": members.fourier[:0], "sizes": np.array(sizes._replace(directions=0, direct=0))},
        "products": {"products": members.products[:0], "sizes": np.array(sizes._replace(pairs=0))},
        "forest": {"sizes": np.array(sizes._replace(trees=0))},
        "stack": {"stacks": False},
    }
    return members._replace(prior=members.prior[kept], **changes[kind])


@contextmanager
def leaving_out(kind: str) -> Iterator[None]:
    choose = settings.choose
    with patch.object(settings, "choose", lambda *given: without(kind, choose(*given))):
        yield


def ablation(wanted: Iterable[str], n: int) -> list[tuple[str, dict[str, Score]]]:
    found = []
    for name in wanted:
        progress(f"{name}: members left out")
        rows = STREAMS[name](n)
        scores = {"all members": OURS[HIGH](rows)}
        for kind in KINDS:
            with leaving_out(kind):
                scores[f"no {kind}"] = OURS[HIGH](rows)
        found.append((name, scores))
    return found


# ---------------------------------------------------------------------- the page


TITLES = {"loss": "Log loss", "error": "Errors", "brier": "Brier score", "microseconds": "Microseconds per row"}


def scores_table(lines: list[Line], field: str) -> list[str]:
    """One line per stream; the smallest online figure is in bold. LightGBM, which is not online, is last."""
    names = list(lines[0].scores)
    body = []
    for line in lines:
        figures = {name: getattr(found, field) for name, found in line.scores.items()}
        least = min(value for name, value in figures.items() if name != LIGHTGBM)
        digits = 0 if field == "microseconds" else 4
        texts = [f"{value:.{digits}f}" for value in figures.values()]
        bold = [f"**{text}**" if value == least else text for text, value in zip(texts, figures.values(), strict=True)]
        body.append([line.stream, *bold])
    return page.table(["stream", *names], body)


class Goal(NamedTuple):
    figure: dict[str, Any]
    missed: list[str]  # the streams that miss it, with the figures


def ratio(figure: float, best: float) -> float:
    """Of two losses or errors, of which the second may be 0."""
    return figure / best if best > 0.0 else 1.0 if figure == 0.0 else np.inf


def count(
    lines: list[Line], what: str, wanted: float, over: Callable[[dict[str, Score]], float], most: float = 1.0
) -> Goal:
    """On how many streams a ratio is at most `most`; `wanted` is a share of the streams."""
    ratios = {line.stream: over(line.scores) for line in lines}
    missed = [f"{name} {value:.3f}" for name, value in ratios.items() if value > most]
    unit = f"of {len(lines)} streams"
    return Goal(page.goal(what, len(lines) - len(missed), wanted * len(lines), True, unit), missed)


def times(lines: list[Line], what: str, above: str, below: str, wanted: float, at_least: bool) -> Goal:
    """The worst quotient of two times per row, and all streams that miss the goal."""
    found = {line.stream: line.scores[above].microseconds / line.scores[below].microseconds for line in lines}
    missed = [f"{name} {x:.1f}" for name, x in found.items() if (x < wanted if at_least else x > wanted)]
    worst = (min if at_least else max)(found.values())
    what += f": {'smallest' if at_least else 'largest'} of all streams (median {statistics.median(found.values()):.3g})"
    return Goal(page.goal(what, worst, wanted, at_least), missed)


def goals(lines: list[Line], at_d20: float) -> list[Goal]:
    online = [name for name in RIVALS if name in lines[0].scores and name != LIGHTGBM]
    found = [
        Goal(page.goal("time of medium over that of low, d = 20, K = 2", at_d20, 10, False), []),
        times(lines, "time of medium over that of low", MEDIUM, LOW, 10, False),
    ]
    helped = f"smoothed by {SMOOTHED} where it helps"
    if online:
        what = "log loss of high below every online rival's"
        found += [
            count(lines, what, 0.9, lambda s: ratio(s[HIGH].loss, min(s[name].loss for name in online))),
            count(
                lines,
                f"{what}, these {helped}",
                0.9,
                lambda s: ratio(s[HIGH].loss, min(best(s[name]) for name in online)),
            ),
        ]
    if {ARF, AMF} <= set(online):
        what = "log loss of MondrianForest at most that of River's AMF"
        found += [
            count(
                lines,
                "errors of high at most 1.05 times those of River's better forest",
                1.0,
                lambda s: ratio(s[HIGH].error, min(s[ARF].error, s[AMF].error)),
                most=1.05,
            ),
            times(lines, "time of River's ARF over that of high", ARF, HIGH, 10, True),
            times(lines, "time of River's AMF over that of MondrianForest", AMF, FOREST, 20, True),
            count(lines, what, 1.0, lambda s: ratio(s[FOREST].loss, s[AMF].loss)),
            count(lines, f"{what}, this {helped}", 1.0, lambda s: ratio(s[FOREST].loss, best(s[AMF]))),
        ]
    return found


def best(of_rival: Score) -> float:
    """Its log loss, smoothed or not, whichever is smaller."""
    return min(of_rival.loss, of_rival.smoothed)


def reference(lines: list[Line]) -> list[str]:
    """Where the offline reference is better."""
    if LIGHTGBM not in lines[0].scores:
        return []
    better = [line.stream for line in lines if best(line.scores[LIGHTGBM]) < line.scores[HIGH].loss]
    where = f"{len(better)} of {len(lines)} streams{': ' if better else ''}{', '.join(better)}"
    return ["", f"The log loss of LightGBM, smoothed by {SMOOTHED} where it helps, is below that of high on {where}."]


def misses(found: list[Goal]) -> list[str]:
    listed = [f"- {goal.figure['what'].split(':')[0]}: {', '.join(goal.missed)}" for goal in found if goal.missed]
    return ["Streams that miss a goal, with the ratio of the figures:", "", *listed] if listed else []


def ablation_table(found: list[tuple[str, dict[str, Score]]]) -> list[str]:
    heads = list(found[0][1])
    body = []
    for name, scores in found:
        base = scores["all members"].loss
        cells = [f"{base:.4f}"] + [f"{100.0 * (scores[head].loss / base - 1.0):+.1f} %" for head in heads[1:]]
        body.append([name, *cells])
    return page.table(["stream", *heads], body)


def streams_table(lines: list[Line]) -> list[str]:
    body = [
        [line.stream, f"{line.rows:,}", str(line.features), str(line.classes), CHOSEN_ON.get(line.stream, NEITHER)]
        for line in lines
    ]
    return page.table(["stream", "rows", "features", "classes", "used to choose"], body, words=(0, 4))


def markdown(
    lines: list[Line], at_d20: float, ablated: list[tuple[str, dict[str, Score]]], notes: list[str]
) -> list[str]:
    found = goals(lines, at_d20)
    out = [*streams_table(lines), "", "### Goals beyond straight lines", ""]
    out += [*page.goals_table([goal.figure for goal in found]), "", *misses(found), *reference(lines)]
    for field, title in TITLES.items():
        out += ["", f"### {title}", "", *scores_table(lines, field)]
    if ablated:
        out += ["", "### One kind of member left out", ""]
        out += [f'Log loss of `effort="high"` on {ABLATION_ROWS:,} rows, and its change without a kind of member.', ""]
        out += ablation_table(ablated)
    return [*out, "", *notes]


INTRODUCTION = f"""\
## Beyond straight lines

Every row is forecast before its label is used. Log loss is the mean of -ln(probability of the true class), clipped at
1e-15; errors are the share of rows whose most probable class was wrong; the Brier score is the mean squared distance
between the probabilities and the label, summed over the classes; time is that of the processor per row, to forecast and
learn, in one block for our learners and row by row for the others. Everybody plays once. One order of each stream, the
first {ROWS:,} rows ({WIDE_ROWS:,} of usps): these are short streams, and figures of one draw. On a busy machine a
time may differ by half from one run to the next.

- Ours: `OnlineLogisticRegression` with effort low, medium and high, and `MondrianForest(n_estimators=10)`.
- River: `ARFClassifier` (ten trees), `AMFClassifier` (ten trees), `HoeffdingAdaptiveTreeClassifier` (HAT) and
  `KNNClassifier`, with their defaults and a seed. These and LightGBM learn the classes as they appear: one that they
  have not seen has probability 0, which costs 34.5 in log loss. Therefore losses are also compared with those of
  forecasts smoothed by {SMOOTHED} of the uniform one, on each stream where that helps the rival.
- Vowpal Wabbit: `-q ::` (all products of two columns) and `--nn 10` (ten hidden units), with logistic loss, and with
  `--oaa K --probabilities` for more than two classes.
- LightGBM, with its defaults, is fitted again to all rows so far, first to {FIRST_FIT} and then at every {GROWTH} times
  as many. It is not an online learner and only a reference; its time includes the fits.

Public data (in the folder `REGRETLESS_DATA`) is shuffled except for elec2, which is in time order; the other streams
are drawn by River's generators: see `benchmarks/nonlinear.py`. The first table says which streams were used to choose
the members of `OnlineLogisticRegression` and their sizes, or the form of the stack (see
[online-logistic-regression.md](online-logistic-regression.md)). The others, usps and all generators, are only reported;
but drawn streams similar to RandomRBF and to Agrawal were used to choose. Generated by

    REGRETLESS_DATA=folder python -m benchmarks.nonlinear --cache nonlinear.json --write
"""


def is_there(name: str) -> bool:
    if name in GENERATORS:
        return find_spec("river") is not None
    folder = Path(os.environ.get("REGRETLESS_DATA", "/nowhere"))
    if name == "usps":
        return (folder / "usps-zip.gz").exists()
    return folder.exists() and any(folder.glob(f"{name}*"))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--streams", nargs="+", metavar="NAME", choices=STREAMS, help=f"of {', '.join(STREAMS)}")
    arguments.add_argument("--rows", type=int, default=ROWS, help=f"the first rows of every stream ({ROWS:,})")
    arguments.add_argument("--cache", type=Path, metavar="FILE", help="cache the scores of rivals in FILE")
    arguments.add_argument("--write", action="store_true", help="write the tables to docs/benchmarks.md")
    given = arguments.parse_args()

    rivals = [name for name, rival in RIVALS.items() if find_spec(rival.package)]
    wanted = [name for name in given.streams or STREAMS if is_there(name)]
    skipped = [name for name in given.streams or STREAMS if name not in wanted]
    packages = dict.fromkeys(RIVALS[name].package for name in rivals)
    notes = ["Versions: " + ", ".join(f"{each} {version(each)}" for each in ("regretless", *packages)) + "."]
    notes.append(f"Processor: {processor()}, {os.cpu_count()} cores, shared with other work.")
    if len(rivals) < len(RIVALS):
        notes.append(f"Not installed, and so left out: {', '.join(name for name in RIVALS if name not in rivals)}.")
    if skipped:
        notes.append(f"Streams whose data was not there: {', '.join(skipped)}.")

    cache, lines = Cache(given.cache), []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflows of River, names of columns of LightGBM
        progress("compiling")
        for classes in (2, 3):
            few = logistic(60, 5, SEED)._replace(y=np.arange(60) % classes, K=classes)
            for play in OURS.values():
                play(few)
        d20 = logistic(given.rows, 20, SEED)
        medium, low = (OURS[each](d20).microseconds for each in (MEDIUM, LOW))
        for name in wanted:
            rows = STREAMS[name](given.rows)
            scores = {each: play(rows) for each, play in OURS.items()}
            for each in rivals:
                progress(f"{name}: {each}")
                scores[each] = cache.play(name, rows, each)
            lines.append(Line(name, rows.y.size, rows.X.shape[1], rows.K, scores))
        ablated = ablation([name for name in ABLATED if name in wanted], min(given.rows, ABLATION_ROWS))
    if not lines:
        raise SystemExit("no stream: set REGRETLESS_DATA to the folder with the data, or install river.")
    if cache.reused:
        notes.append(
            f"{cache.reused} of {len(lines) * len(rivals)} scores of rivals come from the cache of an earlier run."
        )
    part = markdown(lines, medium / low, ablated, notes)
    print("\n".join(part))
    if given.write:
        page.put(BEGIN, END, part, INTRODUCTION)


if __name__ == "__main__":
    main()

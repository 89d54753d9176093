"""Theorem cards: one page per function of `regretless.bounds`, with a picture of its game (games.py)."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from regretless import bounds
from regretless.evaluate.registry import public_predictors

HERE = Path(__file__).parent
# The errata that concern a bound or the algorithm that it is about: docs/errata.md.
ERRATA = {
    "aioli": ("A1", "A2", "A3"),
    "aioli_inexact": ("A4",),
    "aioli_descent": ("A2", "A3", "A4"),
    "folklore": ("F1", "F2", "F3"),
    "gaf": ("G1", "G2", "G4", "G7"),
    "gaf_general": ("G7",),
    "gaf_logistic": ("G4", "G7"),
    "gaf_sampled": ("G3", "G6"),
    "bandit": ("F6",),
    "boosting": ("F7",),
    "weak_learning": ("F7",),
    "boosting_regression": ("F8",),
    "boosting_regression_anytime": ("F8",),
    "perceptron": ("O1", "O2"),
    "strongly_convex": ("O3",),
    "averaging_excess_risk": ("M1", "M2"),
    "mirror_descent": ("M1",),
    "dual_averaging": ("M1",),
}


def _generator(name: str) -> Any:
    """A script of docs/, which `make docs` runs, as a module."""
    spec = importlib.util.spec_from_file_location(name, HERE.parent / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


tables = _generator("generate_bounds")
learners = _generator("generate_learners")


def math(text: str) -> str:
    """Formulas and names of a docstring in the syntax of MyST."""
    text = re.sub(r":math:`([^`]*)`", lambda found: f"{{math}}`{' '.join(found[1].split())}`", text)
    text = re.sub(r"(?<!\})`(\w+)`", _name, text)
    return re.sub(r"\(?docs/errata\.md(, \w+)?\)?", r"([errata](/errata.md))", text)


def _name(found: re.Match[str]) -> str:
    """A name as a link, if it has a page."""
    name = found[1]
    if name in bounds.__all__:
        return f"[`{name}`](/bounds/{name}.md)"
    return f"[`{name}`](/learners/{name}.md)" if name in public_predictors() else f"`{name}`"


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST have it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def errata() -> dict[str, tuple[str, str]]:
    """The title and the anchor of every erratum, by its code."""
    headings = re.findall(r"^### ((\w\d)\. (.*))$", (HERE.parent / "errata.md").read_text("utf-8"), re.MULTILINE)
    return {code: (title, slug(heading)) for heading, code, title in headings}


def users() -> dict[str, list[str]]:
    """The learners whose `regret_bound` is a bound, by the name of the bound."""
    found: dict[str, list[str]] = {name: [] for name in bounds.__all__}
    for name, kind in public_predictors().items():
        for bound in dict.fromkeys([*learners.bounds_named(kind), *learners.bounds_called(kind)]):
            found[bound].append(name)
    return found


def card(function: Callable[..., float], used: list[str], about: str) -> str:
    """The page of one theorem."""
    name, entry = function.__name__, tables.entry(function)
    paragraphs = [" ".join(part.split()) for part in (inspect.getdoc(function) or "").split("\n\n")]
    remarks = [
        part for part in paragraphs[1:] if not part.startswith((".. math::", "**Order.**", "**Assumes.**", ">>>"))
    ]
    formula = next(part for part in paragraphs if part.startswith(".. math::")).removeprefix(".. math:: ")
    _, _, rest = entry.theorem.partition(", ")
    cited = ", ".join(f"[{each}](#ref-{each})" for each in re.findall(r"`([\w-]+)`", entry.theorem))
    source = cited + (f", {rest}" if rest and "`" not in rest else "")
    text = f"# {name}\n\n**{math(entry.bounded)}** is at most\n\n```{{math}}\n{formula}\n```\n\n"
    if "lower_bound" in name:
        text = text.replace("is at most", "is at least")
    text += f"Source: {source}. Order: {entry.order}.\n\n"
    text += f"![Bound and measurement over rows](/bounds/{name}.png)\n\n*{about}*\n\n"
    text += "## Statement\n\n" + "\n\n".join(math(part) for part in remarks) + "\n\n" if remarks else ""
    text += "The letters are those of [the list of notation](/bounds/index.md#notation).\n\n"
    text += "## Assumptions\n\n"
    assumes = next(part for part in paragraphs if part.startswith("**Assumes.**")).removeprefix("**Assumes.** ")
    text += "".join(f"- {math(part.strip())}\n" for part in assumes.rstrip(".").split(";")) + "\n"
    text += "Numeric assumptions are checked: the function raises {py:obj}`regretless.NoBound` if one fails.\n\n"
    text += f"## The function\n\n{{py:func}}`regretless.bounds.{name}`:\n\n"
    call = entry.call.strip("`")
    if len(call) > 60:
        call = re.sub(r"\((.*)\)$", lambda found: "(\n    " + found[1].replace(", ", ",\n    ") + ",\n)", call)
    text += f"```python\nfrom regretless import bounds\n\nprint(bounds.{call})  # {entry.number}\n```\n\n"
    if used:
        links = ", ".join(f"[`{each}`](/learners/{each}.md)" for each in used)
        text += f"Used by {links}.\n\n"
    if name in ERRATA:
        known = errata()
        text += "## Errata\n\n"
        text += "".join(f"- [{code}](/errata.md#{known[code][1]}): {known[code][0]}\n" for code in ERRATA[name]) + "\n"
    return text


def index() -> str:
    """The list of cards by family, with the notation."""
    introduction, _, notation = tables.INTRODUCTION.partition("Notation, unless a row says otherwise:")
    introduction = re.sub(r"<!--.*?-->\n\n", "", introduction, flags=re.DOTALL)
    introduction = introduction.replace("# Bounds", "# Theorem cards").replace(
        "The tables below list the bounded quantity,\nthe formula, the assumptions and a worked example.",
        "Each has a card: the statement,\nthe assumptions, the function, known errors of the text, and a "
        "picture of the bound "
        "beside\nwhat happened on a hard stream.",
    )
    notation = notation.replace('The column "theorem" starts with the key of the\ntext in `REFERENCES.bib`.', "")
    text = introduction.replace("(errata.md)", "(/errata.md)")
    for family in tables.FAMILIES:
        title = (family.__doc__ or "").strip().partition(": ")[0].rstrip(".")
        text += (
            f"## {title if '`' not in title else 'Trees'}\n\n| card | bounded quantity | order |\n| --- | --- | --- |\n"
        )
        for function in tables.theorems(family):
            entry = tables.entry(function)
            text += (
                f"| [`{function.__name__}`](/bounds/{function.__name__}.md) | {math(entry.bounded)} | {entry.order} |\n"
            )
        text += "\n"
    return text + "## Notation\n\nUnless a card says otherwise:" + notation


def draw(name: str) -> tuple[bytes, str]:
    """The picture of a game as PNG, and its caption."""
    from games import BOUND, CERTIFICATE, GAMES

    from regretless.evaluate import plots

    picture = GAMES[name]()
    for label, values in picture.curves.items():
        if BOUND in picture.curves and label not in (BOUND, "rows"):
            above = np.asarray(values) > np.asarray(picture.curves[BOUND]) * (1 + 1e-9)
            if above.any():
                raise ValueError(f"{name}: {label} is above the bound at {np.asarray(picture.x)[above]}.")
    figure, axes = plots.panels(1, 1, width=6.4, height=3.6)
    panel = axes[0, 0]
    looks = {
        BOUND: (plots.BOUND, "--"),
        "lower bound": (plots.BOUND, "--"),
        CERTIFICATE: (plots.CERTIFICATE, "-."),
        "rows": ("0.8", "-"),
    }
    for label, values in picture.curves.items():
        colour, line = looks.get(label, (plots.REGRET, "-"))
        panel.plot(
            picture.x,
            np.asarray(values, dtype=float),
            color=colour,
            linestyle=line,
            linewidth=1.8,
            marker="o",
            markersize=3,
            label=label,
        )
    panel.set_xscale("log")
    if picture.log_y:
        panel.set_yscale("log")
    else:
        panel.axhline(0.0, color="black", linewidth=0.6)
    plots.tidy(panel, picture.x_label, picture.y_label)
    panel.legend(frameon=False, fontsize="small")
    out = BytesIO()
    figure.savefig(out, dpi=130, metadata={"Software": None})
    return out.getvalue(), picture.about


def digest() -> str:
    """A digest of everything that a picture depends on."""
    whole = sha256()
    for path in [HERE / "games.py", Path(__file__), *sorted((HERE.parents[1] / "src").rglob("*.py"))]:
        whole.update(path.read_bytes())
    return whole.hexdigest()


def drawn(folder: Path, jobs: int) -> tuple[dict[str, bytes], dict[str, str]]:
    """The pictures and captions of all bounds: those in `folder` if they are up to date, or else new ones."""
    record, now = folder / "captions.json", digest()
    if record.exists() and (known := json.loads(record.read_text("utf-8")))["digest"] == now:
        return {name: (folder / f"{name}.png").read_bytes() for name in bounds.__all__}, known["captions"]
    found = joblib.Parallel(n_jobs=jobs)(joblib.delayed(draw)(name) for name in bounds.__all__)
    pictures = {name: picture for name, (picture, _) in zip(bounds.__all__, found, strict=True)}
    captions = {name: about for name, (_, about) in zip(bounds.__all__, found, strict=True)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        (folder / f"{name}.png").write_bytes(picture)
    record.write_text(json.dumps({"digest": now, "captions": captions}), "utf-8")
    return pictures, captions


def files(folder: Path, jobs: int) -> dict[str, str | bytes]:
    """The index, every card and every picture, by path on the site; `folder` keeps the pictures between builds."""
    pictures, captions = drawn(folder, jobs)
    used = users()
    found: dict[str, str | bytes] = {"bounds/index.md": index()}
    for function in tables.theorems():
        name = function.__name__
        found[f"bounds/{name}.md"] = card(function, used[name], captions[name])
        found[f"bounds/{name}.png"] = pictures[name]
    return found

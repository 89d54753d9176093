"""The page of a run, in HTML."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from regretless.evaluate.run.wording import entries

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td { padding: .2rem 1.5rem .2rem 0; vertical-align: top }
td:first-child { color: #666 } img { max-width: 100% } code { background: #f3f3f3; padding: 0 .2rem }
"""


def page(summary: dict[str, Any], pictures: list[str], learner: Any) -> str:
    """The report page."""
    rows = "\n".join(f"<tr><td>{html.escape(a)}</td><td>{html.escape(b)}</td></tr>" for a, b in entries(summary))
    images = "\n".join(f'<p><img src="{name}" alt="{name.removesuffix(".png")}"></p>' for name in pictures)
    features = _features(summary["leading_features"])
    told = learner.report() if hasattr(learner, "report") else repr(learner)
    title = f"{Path(summary['data']).name}: {summary['target']}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style></head>
<body>
<h1>{html.escape(title)}</h1>
<table>
{rows}
</table>
{images}
{features}
<p>Every row was forecast before its label was used, so these scores are those of forecasts of unseen rows. The best
constant forecasts the label frequencies of the whole file in every row. The best fixed model is a linear model chosen
with all rows known; the difference from it is called the regret of the run. The guarantee is a proven bound on this
difference.</p>
<details><summary>The model, over all rows that it has learned</summary>
<pre>{html.escape(told)}</pre></details>
<p>Forecasts, scores over time and model are in the same folder as this page. <code>regretless predict model.npz
DATA</code> forecasts other rows.</p>
</body></html>
"""


def _features(table: list[dict[str, Any]]) -> str:
    """The leading features as a table."""
    if not table:
        return ""
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        for cells in (
            (row["feature"], row["step"], "" if row["class"] is None else str(row["class"]), f"{row['change']:+.3g}")
            for row in table
        )
    )
    return f"""<details><summary>Leading features: how the forecast changes when one of them moves</summary>
<table>
<tr><td>feature</td><td>moves</td><td>class</td><td>change of its log-odds, or of the forecast</td></tr>
{rows}
</table></details>"""

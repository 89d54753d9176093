"""Progress of `run` and `predict`, on standard error."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from regretless.core.progress import Bar, progress_bar


def reading(wanted: bool, data: str, format: str | None) -> AbstractContextManager[Bar]:
    """A bar over the lines of a file."""
    return progress_bar(wanted, _lines_about(data, format), "reading (and compiling, once per machine)", transient=True)


def _lines_about(data: str, format: str | None) -> int | None:
    """The approximate number of lines of a text file, from its first megabyte."""
    path = Path(data)
    if data == "-" or format in ("parquet", "arrow") or path.suffix in (".gz", ".bz2", ".xz", ".parquet", ".arrow"):
        return None
    size = path.stat().st_size
    with path.open("rb") as file:
        some = file.read(1 << 20)
    return max(1, round(size * some.count(b"\n") / max(len(some), 1)))


def tell(bar: Bar, now: Any) -> None:
    """Show the progress of a run."""
    shown = [f"{now.rows:,} rows"]
    if bar.speed:
        shown.append(f"{bar.speed:,.0f} rows/s")
    if now.mean_loss == now.mean_loss:
        shown.append(f"loss {now.mean_loss:.4f}")
    if now.certificate == now.certificate:
        shown.append(f"certificate {now.certificate:.4g}")
    bar.update(description="  ".join(shown), completed=now.lines)


def tell_step(bar: Bar, what: str, done: int, total: int | None) -> None:
    """Show a step of the report."""
    bar.update(description=f"report: {what}", completed=done, total=total)

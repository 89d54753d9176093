"""Write the output of `learner.report()` into docs/quickstart.md: `make docs`."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).with_name("quickstart.md")


def page() -> str:
    """The page with the report that its first Python block prints, up to the report."""
    text = PAGE.read_text()
    [code] = re.findall(r"^```python\n(.*?report\(\)\))", text, re.MULTILINE | re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, {})
    before, after = re.split(r"(?<=\.report\(\)` is:\n\n```\n).*?(?=^```)", text, flags=re.MULTILINE | re.DOTALL)
    return before + out.getvalue() + after


if __name__ == "__main__":
    PAGE.write_text(page())

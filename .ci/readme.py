"""Run every Python block of the README with what is installed: `python .ci/readme.py README.md`, from any folder."""

import re
import sys
from pathlib import Path

for block in re.findall(r"^```python\n(.*?)^```", Path(sys.argv[1]).read_text("utf-8"), re.MULTILINE | re.DOTALL):
    exec(compile(block, sys.argv[1], "exec"), {"__name__": "__main__"})

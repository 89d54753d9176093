"""Advice in messages of the library, in the words of the command: its options instead of Python's arguments."""

from __future__ import annotations

import re

OPTIONS = (
    (r"declare=\{.*\}: (.*); remove declare=", r"\1: remove --drop, --category, --number, --date, --trend and --id"),
    (r'on_bad(_row)?="skip"', "--on-bad skip"),
    (r" ?Nothing was learned from this call\.", ""),
    (r"declare=\{(.+?): '(drop|category)'\}", r"--\2 \1"),
    (r"Declare it in declare=", "Declare it with --category or --number"),
    (r"\b(encoding|decimal|weight|format)='(.+?)'", r"--\1 \2"),
    (r"(pass|remove) (encoding|weight|format)=", r"\1 --\2"),
    (r"pass a larger columns=", "pass a larger --columns"),
)


def for_command(text: str) -> str:
    """The text with options of the command.

    >>> for_command('row 3: no label. Correct it, or skip such rows with on_bad="skip".')
    'row 3: no label. Correct it, or skip such rows with --on-bad skip.'
    """
    for pattern, option in OPTIONS:
        text = re.sub(pattern, option, text)
    return text

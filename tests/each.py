"""Many short cases in one test: pytest takes longer to begin a test than most of them to end."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def for_each(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, but all cases are one test. An error names the case."""
    keys, values = ((names,), [(case,) for case in cases]) if isinstance(names, str) else (names, list(cases))
    assert values

    def in_one(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def played(**given: Any) -> None:
            for case in values:
                own = dict(zip(keys, case, strict=True))
                try:
                    test(**given, **own)
                except BaseException as error:
                    error.add_note(f"The case was {own}.")
                    raise

        signature = inspect.signature(test)
        rest = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        played.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return played

    return in_one

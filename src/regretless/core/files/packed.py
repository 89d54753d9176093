"""A header and named arrays as bytes, without the space and time that an archive takes per array.

The layout is a mark, a check sum of all that follows, the length of the header, the header in JSON, and the arrays one
after another. The header lists name, type and shape of each. Reading trusts nothing, as in `archive.py`.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.core.files.archive import LARGEST_HEADER, dtype_of, parse_header

Forms = dict[str, tuple[np.dtype[Any], tuple[int, ...], int]]

MARK = b"RGRT"
LEAD = struct.Struct("<4sII")  # the mark, the check sum, the bytes of the header
KIND = re.compile(r"[<>|][biufcSUmM]\d{1,9}(?:\[\w{1,9}\])?")


def pack(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """The header and the arrays as bytes. Equal contents give equal bytes."""
    forms = {name: [array.dtype.str, *array.shape] for name, array in arrays.items()}
    text = json.dumps({**header, "arrays": forms}, separators=(",", ":")).encode()
    if len(text) > LARGEST_HEADER:
        raise ValueError(f"the header would have {len(text):,} bytes; the limit is {LARGEST_HEADER:,}.")
    size = struct.pack("<I", len(text))
    rest = b"".join((size, text, *(array.tobytes() for array in arrays.values())))
    return MARK + struct.pack("<I", zlib.crc32(rest)) + rest


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays. Raises ValueError if the bytes are damaged."""
    text = header_of(data)
    header, forms = read_header(text)
    return header, arrays_of(data, len(text), forms)


def header_of(data: bytes) -> bytes:
    """The header, as text, after checking the mark and the check sum. Learners that differ in their states share it."""
    if len(data) < LEAD.size or data[: len(MARK)] != MARK:
        raise ValueError("they do not start as the bytes of a learner do")
    _, check, n_header = LEAD.unpack_from(data)
    if zlib.crc32(memoryview(data)[8:]) != check:
        raise ValueError("the check sum differs")
    if n_header > min(len(data) - LEAD.size, LARGEST_HEADER):
        raise ValueError(f"the header claims {n_header:,} bytes")
    return data[LEAD.size : LEAD.size + n_header]


def read_header(text: bytes) -> tuple[dict[str, Any], Forms]:
    """The header, and type, shape and number of elements of each array."""
    header = parse_header(text)
    forms = header.pop("arrays", None)
    if not isinstance(forms, dict):
        raise ValueError("the header lists no arrays")
    return header, {name: _form(name, form) for name, form in forms.items()}


def arrays_of(data: bytes, n_header: int, forms: Forms) -> dict[str, NDArray[Any]]:
    """The arrays, which follow a header of `n_header` bytes."""
    arrays, at = {}, LEAD.size + n_header
    for name, (dtype, shape, n) in forms.items():
        if n * dtype.itemsize > len(data) - at:
            raise ValueError(f"{name!r} claims the shape {shape}, but {len(data) - at:,} bytes are left")
        arrays[name] = np.frombuffer(data, dtype, n, at).reshape(shape).copy()
        at += n * dtype.itemsize
    if at != len(data):
        raise ValueError(f"{len(data) - at:,} bytes are left over")
    return arrays


def _form(name: str, form: Any) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Type, shape and number of elements of an array."""
    if not isinstance(form, list) or not 1 <= len(form) <= 9 or not isinstance(form[0], str):
        raise ValueError(f"{name!r} has no type and shape")
    if not KIND.fullmatch(form[0]) or not all(type(n) is int and 0 <= n < 1 << 48 for n in form[1:]):
        raise ValueError(f"{name!r} has the type and shape {form!r}, which no learner has")
    shape = tuple(form[1:])
    return dtype_of(name, form[0]), shape, math.prod(shape)

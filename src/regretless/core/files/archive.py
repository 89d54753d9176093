"""A header and named arrays in one file: an uncompressed zip archive of `header.json` and `.npy` members.

`packed.py` has a shorter form, for many small learners.

Reading trusts nothing. Sizes are checked against the bytes in the file, nothing is decompressed, and no array header is
evaluated: a file takes about as much memory as it has bytes.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import struct
import zipfile
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

HEADER = "header.json"
LARGEST_HEADER = 1 << 26  # bytes; parsed JSON may take twenty times as much memory
EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed time stamp, so that equal contents give equal files
PIECE = 1 << 24  # bytes that are read at a time
MAGIC = b"\x93NUMPY\x01\x00"  # the start of an array written by NumPy, format version 1.0
FORM = re.compile(
    rb"\{'descr': '([<>|][biufcSUmM]\d{1,9}(?:\[\w{1,9}\])?)', 'fortran_order': (False|True), "
    rb"'shape': \(((?:\d{1,15},? ?){0,8})\), \} *\n"
)

# Raised by `zipfile` for damaged files. RuntimeError: encrypted; NotImplementedError is a subclass.
DAMAGE = (zipfile.BadZipFile, EOFError, RuntimeError, struct.error, LookupError, OverflowError)


def write(file: IO[bytes], header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write the header and the arrays. Equal contents give equal bytes."""
    with ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(header, indent=1, sort_keys=True).encode()
        if len(text) > LARGEST_HEADER:
            raise ValueError(
                f"the header would have {len(text):,} bytes; the limit is {LARGEST_HEADER:,}: shorten the names of "
                "features, classes or stumps."
            )
        archive.writestr(ZipInfo(HEADER, EPOCH), text)
        for name, array in arrays.items():
            lead = io.BytesIO()
            lines = np.asarray(array, order="C")
            np.lib.format.write_array_header_1_0(lead, np.lib.format.header_data_from_array_1_0(lines))
            info = ZipInfo(f"{name}.npy", EPOCH)
            info.file_size = lead.tell() + lines.nbytes  # known in advance, for archives beyond 2 GiB
            with archive.open(info, "w") as member:
                member.write(lead.getvalue())
                member.write(lines.reshape(-1).view(np.uint8).data if lines.size else b"")


def read(file: IO[bytes]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the arrays. Raises ValueError if the file is damaged."""
    try:
        with ZipFile(file) as archive:
            members = _members(archive, os.fstat(file.fileno()).st_size)
            if HEADER not in members:
                raise ValueError(f"it has no {HEADER}")
            if members[HEADER].file_size > LARGEST_HEADER:
                raise ValueError(f"{HEADER} has {members[HEADER].file_size:,} bytes, more than {LARGEST_HEADER:,}")
            header = parse_header(archive.read(members.pop(HEADER)))
            arrays = {name.removesuffix(".npy"): _array(name, _bytes(archive, info)) for name, info in members.items()}
    except DAMAGE as error:
        raise ValueError(f"it is not an archive, or a damaged one: {error!r}") from error
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # an error of the disk, not of the file
            raise
        raise ValueError(f"it is not an archive, or a damaged one: {error!r}") from error
    return header, arrays


def _members(archive: ZipFile, n_bytes: int) -> dict[str, ZipInfo]:
    """The members by name, after checking that they are not larger than the file."""
    found: dict[str, ZipInfo] = {}
    total = 0
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise ValueError(f"{info.filename!r} is compressed or encrypted, which `save` never does")
        if info.filename in found:
            raise ValueError(f"{info.filename!r} occurs twice")
        if info.filename != HEADER and not info.filename.endswith(".npy"):
            raise ValueError(f"{info.filename!r} is neither {HEADER} nor an array")
        total += info.file_size
        found[info.filename] = info
    if total > n_bytes:
        raise ValueError(f"its members claim {total:,} bytes, but it has {n_bytes:,}")
    return found


def parse_header(text: bytes) -> dict[str, Any]:
    """The JSON object in a header."""
    try:
        header = json.loads(text.decode())
    except RecursionError as error:
        raise ValueError(f"{HEADER} is nested too deeply") from error
    except ValueError as error:  # not JSON, not UTF-8, or a number with thousands of digits
        raise ValueError(f"{HEADER} cannot be read: {error}") from error
    if not isinstance(header, dict):
        raise ValueError(f"{HEADER} is not a JSON object")
    return header


def _bytes(archive: ZipFile, info: ZipInfo) -> bytearray:
    """A member, in memory that an array can use: a second copy of a million learners would be another gigabyte."""
    data = bytearray(info.file_size)
    view, at = memoryview(data), 0
    with archive.open(info) as member:
        while part := member.read(PIECE):
            view[at : at + len(part)] = part
            at += len(part)
    if at != info.file_size:
        raise ValueError(f"{info.filename!r} claims {info.file_size:,} bytes, and has {at:,}")
    return data


def _array(name: str, data: bytearray) -> NDArray[Any]:
    """The array of a member, in C order, after checking that its shape and type match its number of bytes."""
    first = len(MAGIC) + 2
    start = first + int.from_bytes(data[len(MAGIC) : first], "little")
    form = FORM.fullmatch(data, first, start)
    if not data.startswith(MAGIC) or start > len(data) or form is None:
        raise ValueError(f"{name!r} is not an array written by `save`")
    kind, fortran, lengths = (part.decode() for part in form.groups())
    dtype = dtype_of(name, kind)
    shape = tuple(int(length) for length in lengths.replace(",", " ").split())
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ValueError(f"{name!r} claims the shape {shape} of {kind!r}, but has {len(data) - start:,} bytes")
    flat = np.frombuffer(data, dtype, offset=start)
    return np.asarray(flat.reshape(shape, order="F" if fortran == "True" else "C"), order="C")


def dtype_of(name: str, kind: str) -> np.dtype[Any]:
    """The type of an array's elements, from its text."""
    try:
        dtype = np.dtype(kind)
    except TypeError as error:
        raise ValueError(f"{name!r} has an unknown type, {kind!r}") from error
    if dtype.itemsize == 0 or dtype.kind == "O":
        raise ValueError(f"{name!r} has the type {kind!r}, which `save` never writes")
    return dtype

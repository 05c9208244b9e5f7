"""Amounts of memory on the command line."""

import re

import typer

UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", start=1)},
    **{prefix: 1024**power for power, prefix in enumerate("kmgt", start=1)},
}

SIZE = re.compile(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)", re.IGNORECASE)

LEAST = 256 * 1024**2
"""Bytes: Python and its libraries need as much before they read anything."""


def parse_bytes(text: str) -> int:
    """Return the bytes of `4GB`, `4GiB` or `4G`; anything else, and less than 256 MiB, is a usage error."""
    size = SIZE.fullmatch(text.strip())
    unit = UNITS.get(size[2].lower()) if size else None
    if size is None or unit is None:
        raise typer.BadParameter(f"{text!r} is not a size: write 4GB")
    if float(size[1]) * unit < LEAST:
        raise typer.BadParameter(f"{text!r} is too little for any recording: write 1GB or more")
    return int(float(size[1]) * unit)

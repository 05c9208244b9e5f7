"""Times and amounts of memory on the command line."""

import re

import typer

UNITS_S = {"": 1.0, "s": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0}

UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", start=1)},
    **{prefix: 1024**power for power, prefix in enumerate("kmgt", start=1)},
}

AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", re.IGNORECASE)

LEAST = 256 * 1024**2  # Bytes: Python and its libraries need as much before they read anything


def parse_seconds(text: str) -> float:
    """Return the seconds of `2`, `2s`, `500ms`, `1m` or `1h`; anything else is a usage error."""
    time = AMOUNT.fullmatch(text.strip())
    unit = UNITS_S.get(time[2].lower()) if time else None
    if time is None or unit is None or not float(time[1]):
        raise typer.BadParameter(f"{text!r} is not a time: write 2s, 500ms or 1m")
    return float(time[1]) * unit


def parse_bytes(text: str) -> int:
    """Return the bytes of `4GB`, `4GiB` or `4G`; anything else, and less than 256 MiB, is a usage error."""
    size = AMOUNT.fullmatch(text.strip())
    unit = UNITS.get(size[2].lower()) if size else None
    if size is None or unit is None:
        raise typer.BadParameter(f"{text!r} is not a size: write 4GB")
    if float(size[1]) * unit < LEAST:
        raise typer.BadParameter(f"{text!r} is too little for any recording: write 1GB or more")
    return int(float(size[1]) * unit)

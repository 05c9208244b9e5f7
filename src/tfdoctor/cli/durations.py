"""Times on the command line."""

import re

import typer

UNITS_S = {"": 1.0, "s": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0}

TIME = re.compile(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)", re.IGNORECASE)


def parse_seconds(text: str) -> float:
    """Return the seconds of `2`, `2s`, `500ms`, `1m` or `1h`; anything else is a usage error."""
    time = TIME.fullmatch(text.strip())
    unit = UNITS_S.get(time[2].lower()) if time else None
    if time is None or unit is None or not float(time[1]):
        raise typer.BadParameter(f"{text!r} is not a time: write 2s, 500ms or 1m")
    return float(time[1]) * unit

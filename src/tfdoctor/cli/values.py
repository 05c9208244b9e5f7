"""Values on the command line: times, amounts, shares, prices, paths and lists; what is none is a usage error."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

import typer

from tfdoctor.cli.streams import say
from tfdoctor.remote.filesystem import is_url
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.report.formats import FORMATS, PRINTED

SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0}
BYTES = {"": 1, "b": 1} | {
    f"{prefix}{end}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for end, base in (("b", 1000), ("", 1024), ("ib", 1024))
}
AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", re.IGNORECASE)

LEAST = 256 * 1024**2  # Bytes: Python and its libraries need as much before they read anything

ONE_PERCENT = 0.01

BESIDE = ("html", "json", "md")  # Formats of what is written beside the output of a command


def parse_seconds(text: str) -> float:
    """Return the seconds of `2`, `2s`, `500ms`, `1m` or `1h`."""
    if seconds := _amount(text, SECONDS):
        return seconds
    raise typer.BadParameter(f"{text!r} is not a time: write 2s, 500ms or 1m")


def parse_bytes(text: str) -> int:
    """Return the bytes of `4GB`, `4GiB` or `4G`, at least 256 MiB."""
    size = _amount(text, BYTES)
    if size is None:
        raise typer.BadParameter(f"{text!r} is not a size: write 4GB")
    if size < LEAST:
        raise typer.BadParameter(f"{text!r} is too little for any recording: write 1GB or more")
    return int(size)


def _amount(text: str, units: Mapping[str, float]) -> float | None:
    found = AMOUNT.fullmatch(text.strip())
    unit = units.get(found[2].lower()) if found else None
    return float(found[1]) * unit if found and unit else None


def at_least(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from ``least`` on."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise typer.BadParameter(f"{text!r} is not a whole number of at least {least}")
        return number

    return parse


def between(least: float, most: float, otherwise: str) -> Callable[[float | None], float | None]:
    """Return what checks an amount; ``otherwise`` is what is said of one that is none."""

    def check(value: float | None) -> float | None:
        if value is not None and not least <= value <= most:  # nan is neither
            raise typer.BadParameter(f"{value:g} {otherwise}")
        return None if value is None else abs(value)  # -0.0 is 0, and "$-0.00" no price

    return check


# US dollars per hour: cheaper than any machine, more than the largest clusters cost.
price = between(0.01, 1e7, "is not a price per hour: write US dollars, at least 0.01, such as 3.20")
# Beyond any price in US dollars, and ten times the CO2 of a kWh from coal, which is about 1,000 g.
of_a_kwh = between(0.0, 1e4, "is no amount for a kWh: write a number from 0 to 10000")


def finite(minutes: float) -> float:
    """Check a number of minutes."""
    if minutes != minutes:  # noqa: PLR0124 - nan passes both limits
        raise typer.BadParameter("nan is not a number of minutes")
    return minutes


def share_for(option: str) -> Callable[[str], float]:
    """Return a parser of the percentages of an option, as shares; 0.1 is none, as it may mean 10%."""

    def parse(text: str) -> float:
        try:
            share = float(text.rstrip("%")) / 100
        except ValueError:
            share = -1.0
        if not 0 < share < 1:
            why = f"{text!r} is not a percentage above 0% and below 100%: write 10%"
        elif share < ONE_PERCENT and not text.endswith("%"):
            why = f"{text!r} may mean {text}% or {1e4 * share:g}%: write it with %"
        else:
            return share
        raise typer.BadParameter(why, param_hint=option)

    return parse


def parse_path(text: str, *, alone: bool = False) -> Path:
    """Return a path to read; of a URL, that of a copy of all that is there, or of a file ``alone``."""
    if not _is_url(text):
        return Path(text)
    from tfdoctor.remote import fetching  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.terms.progress_line import line  # noqa: PLC0415 - same

    with line(f"fetching {text} …", sys.stderr):
        return fetching.fetched(text, alone=alone)


def parse_file(text: str) -> Path:
    """Return the path of a file to read; of a URL, that of a copy."""
    return parse_path(text, alone=True)


def parse_out(text: str) -> Path:
    """Return a folder to write to; of a URL, one whose files are uploaded in the end."""
    return UPLOADS.folder(text) if _is_url(text) else Path(text)


def parse_own(text: str) -> Path:
    """Return a path on this machine."""
    if _is_url(text):
        raise typer.BadParameter(f"{text} is a URL: name a path on this machine")
    return Path(text)


def _is_url(text: str) -> bool:
    if not text:  # it would be the current folder
        raise typer.BadParameter("the path is empty: name one, or check the variable it is from")
    return is_url(text)


def comma_separated(text: str) -> list[str]:
    """Return the names of a list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_formats(text: str, *, show: bool = False) -> list[str]:
    """Return the formats of a report; to `show` it needs the page, so HTML must be among them."""
    names = _known(comma_separated(text) or [text], FORMATS)
    if show and "html" not in names:
        raise typer.BadParameter("--open opens the HTML report: add html", param_hint="--format")
    return names


def files_beside(text: str, *, show: bool) -> list[str]:
    """Return the formats of files beside the output, and HTML where it is to be shown."""
    return _known([*comma_separated(text), *(["html"] if show else [])], BESIDE)


def _known(names: Sequence[str], known: Sequence[str]) -> list[str]:
    if unknown := [name for name in names if name not in known]:
        raise typer.BadParameter(f"{unknown[0]!r} is not one of {', '.join(known)}", param_hint="--format")
    return list(dict.fromkeys(names))


def must_be_files(formats: Sequence[str], out: Path | None) -> None:
    """Refuse a folder for reports that are all printed; say how to keep them."""
    if out and PRINTED.issuperset(formats):
        raise typer.BadParameter(
            f"{' and '.join(formats)} {'is' if len(formats) == 1 else 'are'} printed, so there is no file for a "
            "folder: leave --out out, and write > FILE",
            param_hint="--out",
        )


def parse_link(url: str, formats: Sequence[str]) -> str:
    """Return a web address that can stand in Markdown; say where no format has it."""
    if url and not {"md", "json"} & set(formats):
        say("note: --link is shown by md and stored by json, and neither is written")
    parts = urlsplit(url)
    if url and (parts.scheme not in {"http", "https"} or not parts.netloc):
        raise typer.BadParameter(f"{url!r} is not a web address: write https://...", param_hint="--link")
    return quote(url, safe="%/:=&?~#+!,;@")

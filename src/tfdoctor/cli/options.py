"""Options and argument types that several commands share."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, urlsplit

import typer

from tfdoctor.cli.completion import list_of
from tfdoctor.cli.messages import say
from tfdoctor.remote.filesystem import is_url
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.report.formats import FORMATS, is_streamed


class FailOn(StrEnum):
    """The lowest severity of a finding that makes the command fail."""

    NOTE = "note"
    WARNING = "warning"
    CRITICAL = "critical"
    NEVER = "never"


Formats = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="LIST",
        help=f"Report formats, comma-separated: {', '.join(FORMATS)}.",
        autocompletion=list_of(lambda: FORMATS),
    ),
]
Link = Annotated[
    str,
    typer.Option(
        "--link", metavar="URL", help="Where the HTML report will be found: the Markdown report links to it."
    ),
]
Show = Annotated[bool, typer.Option("--open", help="Open the HTML report in the browser.")]
Fail = Annotated[
    FailOn | None,
    typer.Option(
        "--fail-on",
        help="Exit with 3 on a finding of this severity or above (recording-quality findings excluded).",
    ),
]
Scrub = Annotated[
    bool,
    typer.Option(
        "--scrub",
        help="Remove host names, user names, home folders and source lines from the report, so that it can be "
        "published.",
    ),
]

# US dollars per hour: cheaper than any machine, more than the largest clusters cost.
LOWEST_PRICE, HIGHEST_PRICE = 0.01, 10_000_000.0


def _price(value: float | None) -> float | None:
    if value is not None and not LOWEST_PRICE <= value <= HIGHEST_PRICE:  # nan is neither
        raise typer.BadParameter(
            f"{value:g} is not a price per hour: write US dollars, at least {LOWEST_PRICE}, such as 3.20"
        )
    return value


UsdPerHour = Annotated[
    float | None,
    typer.Option(
        callback=_price,
        metavar="PRICE",
        help="Price per hour of all machines of the job, in US dollars; the report then shows the cost of a step "
        "and of its waste.",
    ),
]


def at_least(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from ``least`` on; anything else is a usage error."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise typer.BadParameter(f"{text!r} is not a whole number of at least {least}")
        return number

    return parse


ForEpochs = Annotated[
    int | None,
    typer.Option(
        "--for-epochs",
        parser=at_least(1),
        metavar="N",
        help="Also say what the findings save of a run of N epochs; what happens once counts once.",
    ),
]


def _of_a_kwh(value: float | None) -> float | None:
    if value is not None and not 0 <= value <= HIGHEST_OF_A_KWH:  # nan is neither
        raise typer.BadParameter(f"{value:g} is no amount for a kWh: write a number from 0 to {HIGHEST_OF_A_KWH:g}")
    return None if value is None else abs(value)  # -0.0 is 0, and "$-0.00" no price


# Beyond any price in US dollars, and ten times the CO2 of a kWh from coal, which is about 1,000 g.
HIGHEST_OF_A_KWH = 10_000.0

UsdPerKwh = Annotated[
    float | None,
    typer.Option(
        callback=_of_a_kwh,
        metavar="PRICE",
        help="Price of a kWh in US dollars; energy that a counter measured is then shown as money too.",
    ),
]
GramsPerKwh = Annotated[
    float | None,
    typer.Option(
        "--gco2-per-kwh",
        callback=_of_a_kwh,
        metavar="GRAMS",
        help="CO2 of a kWh in grams, from the supplier of the electricity; energy that a counter measured is then "
        "shown as CO2 too.",
    ),
]


@dataclass(frozen=True, slots=True)
class SavingOptions:
    """What savings are told of besides time, and of which run."""

    usd_per_hour: UsdPerHour = None
    usd_per_kwh: UsdPerKwh = None
    gco2_per_kwh: GramsPerKwh = None
    for_epochs: ForEpochs = None

    @property
    def prices_energy(self) -> bool:
        """Whether a kWh was given a price, or its CO2."""
        return self.usd_per_kwh is not None or self.gco2_per_kwh is not None


def parse_link(url: str, formats: Sequence[str]) -> str:
    """Return an address that can stand in Markdown; any other is a usage error. Say where no format has it."""
    if url and not {"md", "json"} & set(formats):
        say("note: --link is shown by md and stored by json, and neither is written")
    parts = urlsplit(url)
    if url and (parts.scheme not in {"http", "https"} or not parts.netloc):
        raise typer.BadParameter(f"{url!r} is not a web address: write https://...", param_hint="--link")
    return quote(url, safe="%/:=&?~#+!,;@")


def parse_formats(text: str, *, show: bool = False) -> list[str]:
    """Return the formats of a comma-separated list; an unknown name is a usage error.

    To `show` a report needs the page, so HTML must be among them.
    """
    names = known_formats(comma_separated(text) or [text], FORMATS)
    if show and "html" not in names:
        raise typer.BadParameter("--open opens the HTML report: add html", param_hint="--format")
    return names


TRIAL_MINUTES = 10.0  # For all runs of a trial, unless --minutes says otherwise


def must_be_files(formats: Sequence[str], out: Path | None) -> None:
    """Refuse a folder for reports that are all printed; a usage error says how to keep them."""
    if out and all(map(is_streamed, formats)):
        raise typer.BadParameter(
            f"{' and '.join(formats)} {'is' if len(formats) == 1 else 'are'} printed, so there is no file for a "
            "folder: leave --out out, and write > FILE",
            param_hint="--out",
        )


def known_formats(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the names of formats, each once; one that is not known is a usage error."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is not one of {', '.join(known)}", param_hint="--format")
    return list(dict.fromkeys(names))


def comma_separated(text: str) -> list[str]:
    """Return the names of a list."""
    return [name.strip() for name in text.split(",") if name.strip()]


ONE_PERCENT = 0.01


def parse_path(text: str) -> Path:
    """Return a path to read; of a URL, that of a copy.

    An empty path is a usage error, because it would be the current folder.

    Raises:
        InputError: what is at the URL cannot be read.
    """
    _must_name(text)
    if not is_url(text):
        return Path(text)
    from tfdoctor.remote.fetching import fetched  # noqa: PLC0415 - same
    from tfdoctor.terms.progress_line import line  # noqa: PLC0415 - keeps --help fast

    with line(f"fetching {text} …", sys.stderr):
        return fetched(text)


def parse_file(text: str) -> Path:
    """Return the path of a file to read; of a URL, that of a copy.

    Raises:
        InputError: what is at the URL cannot be read.
    """
    _must_name(text)
    if not is_url(text):
        return Path(text)
    from tfdoctor.remote.fetching import fetched_file  # noqa: PLC0415 - keeps --help fast

    return fetched_file(text)


def parse_out(text: str) -> Path:
    """Return a folder to write to; of a URL, one whose files are uploaded in the end.

    Raises:
        InputError: the scheme of the URL is unknown, or needs a package that is not installed.
    """
    _must_name(text)
    return UPLOADS.folder(text) if is_url(text) else Path(text)


FilesBeside = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="LIST",
        help="Also write these files, comma-separated: html, json, md.",
        autocompletion=list_of(lambda: ("html", "json", "md")),
    ),
]
FilesFolder = Annotated[
    Path | None,
    typer.Option(parser=parse_out, metavar="PATH", help="Folder for the files [default: the current folder]."),
]


def parse_own(text: str) -> Path:
    """Return a path on this machine; a URL is a usage error."""
    _must_name(text)
    if is_url(text):
        raise typer.BadParameter(f"{text} is a URL: name a path on this machine")
    return Path(text)


def _must_name(text: str) -> None:
    if not text:
        raise typer.BadParameter("the path is empty: name one, or check the variable it is from")


def parse_percent(text: str | None, option: str) -> float | None:
    """Return the share of a percentage; anything else is a usage error, and so is 0.1, which may mean 10%."""
    if text is None:
        return None
    try:
        share = float(text.rstrip("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise typer.BadParameter(
            f"{text!r} is not a percentage above 0% and below 100%: write 10%", param_hint=option
        )
    if share < ONE_PERCENT and not text.endswith("%"):
        raise typer.BadParameter(
            f"{text!r} may mean {text}% or {1e4 * share:g}%: write it with %", param_hint=option
        )
    return share

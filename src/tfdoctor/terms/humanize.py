"""Numbers and places as text: the only module that turns a quantity into words."""

import math
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import PurePosixPath

from tfdoctor.terms import text
from tfdoctor.terms.units import Quantity, Unit
from tfdoctor.terms.verdict import Cell, Location, Place, PlaceKind

UNKNOWN = "unknown"

MINUS = "\N{MINUS SIGN}"
_TIMES = "\N{MULTIPLICATION SIGN}"
_THOUSAND = 1000
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_MICROSECONDS_BELOW_MS = 0.01
_LEAST_MS = 0.0001
_JOULES_PER_WH = 3600.0
_LEAST_PERCENT = 0.1
_DECIMALS_BELOW_PERCENT = 9.95
_EXACT_BELOW = 1e15  # Beyond it a float no longer counts one by one


def quantity(value: Quantity) -> str:
    """Return a quantity with its unit, to the digits that matter."""
    return _AS_TEXT[value.unit](value.value)


def _finite(write: Callable[[float], str]) -> Callable[[float | None], str]:
    """Return what writes any number, of what writes those from 0 on."""

    @wraps(write)
    def text_of(value: float | None) -> str:
        if value is None or not math.isfinite(100 * value):  # as a percentage
            return UNKNOWN
        return MINUS + text_of(-value) if value < 0 else write(value)

    return text_of


@_finite
def energy(value: float) -> str:
    """Return an energy of so many joules: ``12.3 J``, ``0.0042 J``, from an hour of a watt on ``3.4 kWh``."""
    return _amount_of("J")(value) if value < _JOULES_PER_WH else _scaled("Wh")(value / _JOULES_PER_WH)


@_finite
def dollars(value: float) -> str:
    """Return money to three digits, in cents from a dollar on: ``$1,204.50``, ``$0.0417``."""
    return f"${value:,.2f}" if value >= 1 or not value else f"${value:.{2 - math.floor(math.log10(value))}f}"


@_finite
def milliseconds(value: float) -> str:
    """Return a time to three digits: ``52.0 ms``, ``1.24 s``, ``0.42 ms``, ``62.2 s``."""
    rounded = _rounded(value, 3)
    if rounded >= _THOUSAND:
        return f"{_digits(value / _THOUSAND, 3)} s"
    if rounded >= 1:
        return f"{_digits(value, 3)} ms"
    if rounded >= _MICROSECONDS_BELOW_MS:
        return f"{value:.2f} ms"
    if value == 0:
        return "0 ms"
    return "<0.1 µs" if value < _LEAST_MS else f"{value * _THOUSAND:.1f} µs"


def time_span(low: float | None, high: float | None) -> str:
    """Return a range of times, its unit once where both ends share it: ``26.8 to 38.7 ms``."""
    return _span(milliseconds(low), milliseconds(high))


def quantity_span(low: Quantity, high: Quantity) -> str:
    """Return a range of quantities, their unit once where both ends share it: ``4.1 to 5.3 %``."""
    return _span(quantity(low), quantity(high))


def _span(start: str, end: str) -> str:
    digits, _, unit = start.rpartition(" ")
    if start == end:
        return end
    return f"{digits if digits and end.endswith(f' {unit}') else start} to {end}"


def about_ms(value: float) -> str:
    """Return an estimated time to two digits, since a prediction knows no more."""
    rounded = _rounded(value, 2)
    if rounded >= _THOUSAND:
        return f"{_trimmed(_digits(rounded / _THOUSAND, 2))} s"
    return f"{_trimmed(_digits(rounded, 2))} ms" if rounded >= 1 else milliseconds(rounded)


_HUNDREDTHS_FROM_S, _TENTHS_BELOW_S, _MINUTES_FROM_S = 0.0995, 99.95, 599.5
_DAY, _HOUR, _MINUTE = 86400, 3600, 60
# From how many seconds on a time has these two units.
_LONG: tuple[tuple[float, int, str, int, str], ...] = (
    (2 * _DAY - _HOUR / 2, _DAY, "d", _HOUR, "h"),
    (_HOUR - 0.5, _HOUR, "h", _MINUTE, "min"),
    (_MINUTES_FROM_S, _MINUTE, "min", 1, "s"),
)
# Below how many seconds an estimate is rounded to how many.
_ROUGH = ((100 * _MINUTE, _MINUTE), (10 * _HOUR, 10 * _MINUTE))


@_finite
def duration(value_ms: float) -> str:
    """Return a time of a run: ``0.42 s``, ``6.1 s``, ``131 s``, ``12 min 5 s``, ``3 h 20 min``, ``2 d 4 h``."""
    seconds = value_ms / _THOUSAND
    if 0 < seconds < _HUNDREDTHS_FROM_S:
        return about_ms(value_ms)
    if seconds < _TENTHS_BELOW_S:
        return f"{_trimmed(f'{seconds:.{2 if seconds < 1 else 1}f}')} s"
    if seconds < _MINUTES_FROM_S:
        return f"{seconds:.0f} s"
    _, large, name, small, small_name = next(row for row in _LONG if seconds >= row[0])
    whole, rest = divmod(round(seconds / small), large // small)
    return f"{whole:,} {name} {rest} {small_name}" if rest else f"{whole:,} {name}"


def about_duration(value_ms: float) -> str:
    """Return an estimated time of a run to about two digits: ``80 s``, ``12 min``, ``3 h 20 min``."""
    seconds = value_ms / _THOUSAND
    if not math.isfinite(seconds) or seconds < _MINUTES_FROM_S:
        return duration(_rounded(value_ms, 2))
    digits = next((unit for limit, unit in _ROUGH if seconds < limit), _HOUR)
    return duration(round(seconds / digits) * digits * _THOUSAND)


@_finite
def percent(value: float) -> str:
    """Return a ratio as a percentage, with a decimal where small values need it."""
    hundredths = 100 * value
    if 0 < hundredths < _LEAST_PERCENT:
        return f"<{_LEAST_PERCENT} %"
    return f"{_trimmed(f'{hundredths:.1f}')} %" if hundredths < _DECIMALS_BELOW_PERCENT else share(value)


@_finite
def share(value: float) -> str:
    """Return a part of the whole in full percents: ``83 %``, ``<1 %``, ``>99 %``."""
    if 0 < value < 1 / 100:
        return "<1 %"
    return ">99 %" if value < 1 <= round(value, 2) else f"{100 * value:,.0f} %"


def factor(value: float) -> str:
    """Return how many times faster, to two digits: 1.15, 5.8, 12."""
    rounded = _rounded(value, 2)
    decimals = 2 if value < 2 else 1 if rounded < 10 else 0  # noqa: PLR2004 - two or three digits
    return f"{value:,.{decimals}f}{_TIMES}"


@_finite
def number(value: float) -> str:
    """Return a number of things: ``20``, ``1,234,567``, ``3.5``."""
    if value >= _EXACT_BELOW:
        return f"{value:.3g}"
    whole = value == int(value) or value >= 100  # noqa: PLR2004 - three digits are shown
    return f"{value:,.0f}" if whole else _trimmed(_digits(value, 3))


def with_noun(value: float, noun: str) -> str:
    """Return a number of things with their noun, in figures: ``1 core``, ``1.5 cores``, ``32 examples``."""
    return f"{number(value)} {noun}{'' if number(value) == '1' else 's'}"


@_finite
def amount(value: float) -> str:
    """Return an amount to three digits from 1 on, to two below, however small: ``1,204``, ``3.25``, ``0.00067``."""
    return number(value) if value >= 1 or not value else _trimmed(f"{value:.{1 - math.floor(math.log10(value))}f}")


counted = text.counted


def location(place: Location | None) -> str:
    """Return ``file:line``, or nothing."""
    return f"{text.name(place.path)}:{place.line}" if place else ""


# What a place is, where it is no line of the finding's own.
NEAR = {
    PlaceKind.LINE: "",
    PlaceKind.TRAINING_CALL: "training call",
    PlaceKind.SCRIPT: "script",
    PlaceKind.TRACE: "trace",
}


def place(shown: Place | None) -> str:
    """Return where a finding is shown: ``file:line``, with what is there if that is no line of its own."""
    if shown is None:
        return ""
    match shown.kind:
        case PlaceKind.SCRIPT:
            at = text.name(shown.path)
        case PlaceKind.TRACE:
            at = text.name(PurePosixPath(shown.path).name)  # its folders are those of the recording
        case _:
            at = location(Location(shown.path, shown.line))
    return f"{at} ({NEAR[shown.kind]})" if NEAR[shown.kind] else at


def cell(value: Cell) -> str:
    """Return one cell of an evidence table."""
    match value:
        case str():
            return text.name(value)
        case Quantity():
            return quantity(value)
        case Location():
            return location(value)


def _scaled(unit: str) -> Callable[[float | None], str]:
    """Return what writes numbers of a unit that takes a prefix."""

    @_finite
    def scaled(value: float) -> str:
        power = 0
        while power < len(_PREFIXES) - 1 and _rounded(value, 3) >= _THOUSAND:
            value, power = value / _THOUSAND, power + 1
        return f"{_trimmed(_digits(value, 3))} {_PREFIXES[power]}{unit}"

    return scaled


def _amount_of(unit: str) -> Callable[[float | None], str]:
    """Return what writes numbers of a unit that takes a prefix from a thousand on, and more decimals below one."""
    return _finite(lambda value: f"{amount(value)} {unit}" if value < 1 else _scaled(unit)(value))


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _digits(value: float, digits: int) -> str:
    """Return a number to so many significant digits, never in scientific notation."""
    rounded = _rounded(value, digits)
    whole = len(str(int(rounded))) if rounded >= 1 else 1
    return f"{rounded:.{max(0, digits - whole)}f}"


def _trimmed(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


# How the units are written.
_AS_TEXT: Mapping[Unit, Callable[[float], str]] = {
    Unit.MILLISECONDS: milliseconds,
    Unit.RATIO: percent,
    Unit.COUNT: number,
    Unit.BYTES: _scaled("B"),
    Unit.BYTES_PER_SECOND: _scaled("B/s"),
    Unit.FLOP_PER_SECOND: _scaled("FLOP/s"),
    Unit.FLOP_PER_DOLLAR: _scaled("FLOP/$"),
    Unit.EXAMPLES_PER_SECOND: lambda value: f"{number(value)} {Unit.EXAMPLES_PER_SECOND}",
    Unit.US_DOLLARS: dollars,
    Unit.JOULES: energy,
    Unit.WATTS: _amount_of("W"),
    Unit.GRAMS_CO2: _amount_of("g CO2"),
}

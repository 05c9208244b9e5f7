"""The roofline: how fast the heaviest operations compute, beside what the device and its memory allow.

An operation with I FLOPs for each byte that it moves computes at most at the smaller of the device's rate and I
times the memory's: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009. Bytes are those of operands
and results, so an operation whose tensors stay in caches can lie above the memory's line.
"""

import math
from collections.abc import Sequence

from tfdoctor.diagnosis import DeviceRates, OperationRow
from tfdoctor.report.figures import Figure, as_text, figure_json
from tfdoctor.report.palette import OTHER_STAGE, PART_COLOURS
from tfdoctor.report.point_labels import LabelledPoint, positions
from tfdoctor.report.tables import grid
from tfdoctor.report.words import is_known
from tfdoctor.terms import text
from tfdoctor.terms.humanize import milliseconds, quantity
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import bandwidth, flop_rate, ms, ratio
from tfdoctor.terms.verdict import Cell

SHOWN = 40  # Operations that are drawn: the heaviest
FEWEST = 2  # Operations below which there is nothing to compare
LABEL = 36  # Characters of a line of a label: the longest usual names of operations


class RooflinePoint(Record):
    """An operation: FLOPs for each byte, and FLOPs per second."""

    row: OperationRow
    intensity: float
    flop_s: float

    def of_limit(self, rates: DeviceRates) -> float | None:
        """Return which share of what the rates allow it reaches; None where that is unknown."""
        limit = limit_at(self.intensity, rates)
        return self.flop_s / limit if limit else None


def figure(rows: Sequence[OperationRow], rates: DeviceRates | None) -> Figure | None:
    """Return the picture; None where rates, or FLOPs and bytes of operations, are not known."""
    points = [
        RooflinePoint(row, row.flops / row.nbytes, row.flops / row.self_ms * 1e3)
        for row in rows
        if is_known(row.share) and row.self_ms > 0 and row.flops and row.nbytes
    ][:SHOWN]
    if rates is None or len(points) < FEWEST:
        return None
    return Figure(
        name="roofline",
        title="Roofline",
        description=_description(points, rates),
        figure=_drawn(points, rates),
        table=grid(
            ("layer", "operation", "own time", "FLOP per byte", "rate", "of the limit"),
            [_cells(point, rates) for point in points],
        ),
    )


def limit_at(intensity: float, rates: DeviceRates) -> float | None:
    """Return the FLOPs per second that the rates allow at so many FLOPs for each byte."""
    limits = [rates.flop_s, intensity * rates.bytes_s if rates.bytes_s else None]
    return min((limit for limit in limits if limit), default=None)


def _description(points: Sequence[RooflinePoint], rates: DeviceRates) -> str:
    heaviest = points[0]
    name = text.name(f"{heaviest.row.operation} of {heaviest.row.layer or 'no layer'}")
    share = heaviest.of_limit(rates)
    reaches = f", {quantity(ratio(share))} of what its FLOPs and bytes allow" if share else ""
    whose = "this run's own elementwise operations" if rates.measured else "the memory"
    rate = quantity(flop_rate(heaviest.flop_s))
    sentences = [
        "The rate of each operation and its FLOPs for each byte.",
        f"The heaviest, {name}, computes at {rate}{reaches}.",
    ]
    if rates.bytes_s:
        sentences.append(f"The sloped line is the rate of {whose}, {quantity(bandwidth(rates.bytes_s))}.")
    if rates.flop_s:
        sentences.append(f"The level line is the 16-bit peak, {quantity(flop_rate(rates.flop_s))}.")
    return " ".join(sentences)


def _cells(point: RooflinePoint, rates: DeviceRates) -> list[Cell]:
    share = point.of_limit(rates)
    return [
        point.row.layer or "no layer",
        point.row.operation,
        ms(point.row.self_ms),
        f"{point.intensity:.3g}",
        flop_rate(point.flop_s),
        ratio(share) if share else "unknown",
    ]


def _drawn(points: Sequence[RooflinePoint], rates: DeviceRates) -> str:
    most = max(point.row.share for point in points) or 1.0
    sizes = [8 + 20 * (point.row.share / most) ** 0.5 for point in points]
    ends = _ends(points, rates)
    limits = [limit_at(end, rates) for end in ends]
    xs = _range(ends)
    ys = _range([*(point.flop_s for point in points), *filter(None, limits)])
    labels = [_label(point) for point in points]
    placed = positions(
        [
            LabelledPoint(_share(point.intensity, xs), _share(point.flop_s, ys), size, lines)
            for point, size, lines in zip(points, sizes, labels, strict=True)
        ]
    )
    drawn = {
        "type": "scatter",
        "name": "operations",
        "mode": "markers+text",
        "x": [point.intensity for point in points],
        "y": [point.flop_s for point in points],
        "marker": {"color": PART_COLOURS["device"], "opacity": 0.75, "size": sizes},
        "text": [
            "<br>".join(map(as_text, lines)) if where else "" for lines, where in zip(labels, placed, strict=True)
        ],
        "textposition": [where or "top center" for where in placed],
        "textfont": {"size": 11},
        "customdata": [as_text(_hover(point)) for point in points],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    line = {"color": OTHER_STAGE, "width": 1.5}
    limit = {
        "type": "scatter",
        "name": "limit",
        "mode": "lines",
        "x": ends,
        "y": limits,
        "line": line,
        "hoverinfo": "skip",
    }
    layout = {
        "showlegend": False,
        "xaxis": {"type": "log", "title": {"text": "FLOP per byte"}, "range": xs},
        "yaxis": {"type": "log", "title": {"text": "FLOP/s"}, "exponentformat": "SI", "range": ys},
    }
    return figure_json([drawn, limit], layout, left=64)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return an axis that has room around these values, as powers of ten."""
    low, high = math.log10(min(values)), math.log10(max(values))
    room = 0.08 * (high - low) or 1.0
    return low - room, high + room


def _share(value: float, of: tuple[float, float]) -> float:
    """Return where a value lies on an axis, 0 to 1."""
    return (math.log10(value) - of[0]) / (of[1] - of[0])


def _label(point: RooflinePoint) -> tuple[str, ...]:
    """Return the layer, as far as there is one, and the operation."""
    names = (text.name(name, LABEL) for name in (point.row.layer, point.row.operation))
    return tuple(filter(None, names))


def _ends(points: Sequence[RooflinePoint], rates: DeviceRates) -> list[float]:
    """Return where the line of the limits begins, bends and ends."""
    intensities = [point.intensity for point in points]
    bend = rates.flop_s / rates.bytes_s if rates.flop_s and rates.bytes_s else None
    known = [*intensities, *([bend] if bend else [])]
    return [min(known) / 2, *([bend] if bend else []), max(known) * 2]


def _hover(point: RooflinePoint) -> str:
    name = text.name(f"{point.row.operation} of {point.row.layer or 'no layer'}", 80)
    return (
        f"{name}: {milliseconds(point.row.self_ms)}, {quantity(flop_rate(point.flop_s))}, "
        f"{point.intensity:.3g} FLOP per byte"
    )

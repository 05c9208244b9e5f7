"""The roofline: how fast the heaviest operations compute, beside what the device and its memory allow.

An operation with I FLOPs for each byte that it moves computes at most at the smaller of the device's rate and I
times the memory's: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009. Bytes are those of operands
and results, so an operation whose tensors stay in caches can lie above the memory's line.
"""

import math
from collections.abc import Sequence

from tfdoctor.diagnosis.work import DeviceRates, OperationRow
from tfdoctor.report.pictures.figures import Figure, as_text, figure_json
from tfdoctor.report.pictures.palette import OTHER_STAGE, PART_COLOURS
from tfdoctor.report.tables import grid
from tfdoctor.report.words import is_known
from tfdoctor.terms import text
from tfdoctor.terms.humanize import milliseconds, quantity
from tfdoctor.terms.units import bandwidth, flop_rate, ms, ratio

SHOWN = 40  # Operations that are drawn: the heaviest
FEWEST = 2  # Operations below which there is nothing to compare
LABEL = 36  # Characters of a line of a label: the longest usual names of operations

# Pixels of the axes in the narrowest window in which points have labels (LABELS_FROM in report.js).
WIDTH, HEIGHT = 500.0, 270.0
# Pixels of a character of 11 px, of a line, and between a point and its label.
CHARACTER, LINE, GAP = 6.5, 13.0, 2.0
MOST = 8  # Labels: more say no more, and hide the points

RooflinePoint = tuple[OperationRow, float, float]  # An operation, its FLOPs for each byte, and FLOPs per second
# A point at shares of width and height, the size of its mark in pixels, and the lines of its label.
LabelledPoint = tuple[float, float, float, tuple[str, ...]]
PixelBox = tuple[float, float, float, float]  # left, right, bottom, top


def figure(rows: Sequence[OperationRow], rates: DeviceRates | None) -> Figure | None:
    """Return the picture; None where rates, or FLOPs and bytes of operations, are not known."""
    points = [
        (row, row.flops / row.nbytes, row.flops / row.self_ms * 1e3)
        for row in rows
        if is_known(row.share) and row.self_ms > 0 and row.flops and row.nbytes
    ][:SHOWN]
    if rates is None or len(points) < FEWEST:
        return None
    cells = [
        [
            row.layer or "no layer",
            row.operation,
            ms(row.self_ms),
            f"{intensity:.3g}",
            flop_rate(flop_s),
            ratio(flop_s / limit) if (limit := limit_at(intensity, rates)) else "unknown",
        ]
        for row, intensity, flop_s in points
    ]
    row, intensity, flop_s = points[0]
    limit = limit_at(intensity, rates)
    whose = "this run's own elementwise operations" if rates.measured else "the memory"
    reaches = f", {quantity(ratio(flop_s / limit))} of what its FLOPs and bytes allow" if limit and flop_s else ""
    told = [
        "The rate of each operation and its FLOPs for each byte.",
        f"The heaviest, {_name(row)}, computes at {quantity(flop_rate(flop_s))}{reaches}.",
    ]
    if rates.bytes_s:
        told.append(f"The sloped line is the rate of {whose}, {quantity(bandwidth(rates.bytes_s))}.")
    if rates.flop_s:
        told.append(f"The level line is the 16-bit peak, {quantity(flop_rate(rates.flop_s))}.")
    columns = ("layer", "operation", "own time", "FLOP per byte", "rate", "of the limit")
    return Figure("roofline", "Roofline", " ".join(told), _drawn(points, rates), grid(columns, cells))


def limit_at(intensity: float, rates: DeviceRates) -> float | None:
    """Return the FLOPs per second that the rates allow at so many FLOPs for each byte."""
    limits = [rates.flop_s, intensity * rates.bytes_s if rates.bytes_s else None]
    return min((limit for limit in limits if limit), default=None)


def _name(row: OperationRow, *limit: int) -> str:
    return text.name(f"{row.operation} of {row.layer or 'no layer'}", *limit)


def _drawn(points: Sequence[RooflinePoint], rates: DeviceRates) -> str:
    rows, intensities, flops = zip(*points, strict=True)
    most = max(row.share for row in rows) or 1.0
    sizes = [8 + 20 * (row.share / most) ** 0.5 for row in rows]
    bend = [rates.flop_s / rates.bytes_s] if rates.flop_s and rates.bytes_s else []
    known = [*intensities, *bend]
    ends = [min(known) / 2, *bend, max(known) * 2]  # where the line of the limits begins, bends and ends
    limits = [limit_at(end, rates) for end in ends]
    xs, ys = _range(ends), _range([*flops, *filter(None, limits)])
    labels = [tuple(filter(None, (text.name(one, LABEL) for one in (row.layer, row.operation)))) for row in rows]
    at = [(_share(intensity, xs), _share(flop_s, ys)) for _, intensity, flop_s in points]
    placed = positions([(*place, size, lines) for place, size, lines in zip(at, sizes, labels, strict=True)])
    hovers = (
        f"{_name(row, 80)}: {milliseconds(row.self_ms)}, {quantity(flop_rate(flop_s))}, "
        f"{intensity:.3g} FLOP per byte"
        for row, intensity, flop_s in points
    )
    drawn = {
        "type": "scatter",
        "name": "operations",
        "mode": "markers+text",
        "x": intensities,
        "y": flops,
        "marker": {"color": PART_COLOURS["device"], "opacity": 0.75, "size": sizes},
        "text": ["<br>".join(map(as_text, lines)) if at else "" for lines, at in zip(labels, placed, strict=True)],
        "textposition": [where or "top center" for where in placed],
        "textfont": {"size": 11},
        "customdata": list(map(as_text, hovers)),
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    line = {"color": OTHER_STAGE, "width": 1.5}
    limit = {"type": "scatter", "name": "limit", "mode": "lines", "x": ends, "y": limits, "line": line}
    layout = {
        "showlegend": False,
        "xaxis": {"type": "log", "title": {"text": "FLOP per byte"}, "range": xs},
        "yaxis": {"type": "log", "title": {"text": "FLOP/s"}, "exponentformat": "SI", "range": ys},
    }
    return figure_json([drawn, {**limit, "hoverinfo": "skip"}], layout, left=64)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return an axis that has room around these values, as powers of ten."""
    low, high = math.log10(min(values)), math.log10(max(values))
    room = 0.08 * (high - low) or 1.0
    return low - room, high + room


def _share(value: float, of: tuple[float, float]) -> float:
    return (math.log10(value) - of[0]) / (of[1] - of[0])


def positions(points: Sequence[LabelledPoint]) -> list[str]:
    """Return where each point has its label, as plotly says it: "top center"; "" where it has none.

    Of the first points those have one whose label fits beside the others.
    """
    taken, found = [mark(point) for point in points], list[str]()
    for own, point in enumerate(points):
        others = [box for at, box in enumerate(taken) if at != own]
        free = (
            (where, box)
            for where, box in label_boxes(point).items()
            if box[0] >= 0 and box[1] <= WIDTH and box[2] >= 0 and box[3] <= HEIGHT
            if not any(meets(box, other) for other in others)
        )
        where, box = next(free, ("", None)) if sum(map(bool, found)) < MOST else ("", None)
        found.append(where)
        taken += [box] if box else []
    return found


def meets(one: PixelBox, other: PixelBox) -> bool:
    """Say whether two rectangles have a pixel in common."""
    return not (one[1] < other[0] or other[1] < one[0] or one[3] < other[2] or other[3] < one[2])


def mark(point: LabelledPoint) -> PixelBox:
    """Return what the point itself covers."""
    x, y, half = point[0] * WIDTH, point[1] * HEIGHT, point[2] / 2
    return x - half, x + half, y - half, y + half


def label_boxes(point: LabelledPoint) -> dict[str, PixelBox]:
    """Return where the label can be, the best first."""
    x, y, away, lines = point[0] * WIDTH, point[1] * HEIGHT, point[2] / 2 + GAP, point[3]
    wide, high = CHARACTER * max(map(len, lines), default=0), LINE * len(lines)
    return {
        "middle right": (x + away, x + away + wide, y - high / 2, y + high / 2),
        "middle left": (x - away - wide, x - away, y - high / 2, y + high / 2),
        "top center": (x - wide / 2, x + wide / 2, y + away, y + away + high),
        "bottom center": (x - wide / 2, x + wide / 2, y - away - high, y - away),
    }

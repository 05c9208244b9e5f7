"""Labels of points in a chart: of the first points, those that fit beside each other."""

from collections.abc import Iterator, Sequence

from tfdoctor.terms.record import Record

# Pixels of the axes in the narrowest window in which points have labels (LABELS_FROM in report.js).
WIDTH, HEIGHT = 500.0, 270.0
# Pixels of a character of 11 px, of a line, and between a point and its label.
CHARACTER, LINE, GAP = 6.5, 13.0, 2.0
MOST = 8  # Labels: more say no more, and hide the points


class LabelledPoint(Record):
    """A point at shares of width and height, the size of its mark in pixels, and the lines of its label."""

    x: float
    y: float
    size: float
    lines: tuple[str, ...]


class Box(Record):
    """A rectangle of pixels."""

    left: float
    right: float
    bottom: float
    top: float

    def meets(self, other: "Box") -> bool:
        """Say whether the two have a pixel in common."""
        beside = self.right < other.left or other.right < self.left
        return not (beside or self.top < other.bottom or other.top < self.bottom)

    @property
    def fits(self) -> bool:
        """Whether it lies within the axes."""
        return self.left >= 0 and self.right <= WIDTH and self.bottom >= 0 and self.top <= HEIGHT


def positions(points: Sequence[LabelledPoint]) -> list[str]:
    """Return where each point has its label, as plotly says it: "top center"; "" where it has none."""
    taken = [mark(point) for point in points]
    found: list[str] = []
    for own, point in enumerate(points):
        others = [box for at, box in enumerate(taken) if at != own]
        free = ((where, box) for where, box in label_boxes(point) if box.fits and not any(map(box.meets, others)))
        where, box = next(free, ("", None)) if sum(map(bool, found)) < MOST else ("", None)
        found.append(where)
        taken += [box] if box else []
    return found


def mark(point: LabelledPoint) -> Box:
    """Return what the point itself covers."""
    x, y, half = point.x * WIDTH, point.y * HEIGHT, point.size / 2
    return Box(x - half, x + half, y - half, y + half)


def label_boxes(point: LabelledPoint) -> Iterator[tuple[str, Box]]:
    """Yield where the label can be, the best first."""
    x, y, away = point.x * WIDTH, point.y * HEIGHT, point.size / 2 + GAP
    wide, high = CHARACTER * max(map(len, point.lines)), LINE * len(point.lines)
    yield "middle right", Box(x + away, x + away + wide, y - high / 2, y + high / 2)
    yield "middle left", Box(x - away - wide, x - away, y - high / 2, y + high / 2)
    yield "top center", Box(x - wide / 2, x + wide / 2, y + away, y + away + high)
    yield "bottom center", Box(x - wide / 2, x + wide / 2, y - away - high, y - away)

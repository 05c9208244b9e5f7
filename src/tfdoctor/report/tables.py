"""Tables as text for every rendering: the data of the charts and the evidence of verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tfdoctor.diagnosis import OperationRow, PipelineStage, StepRow
from tfdoctor.report.words import PART_LABELS
from tfdoctor.terms import text
from tfdoctor.terms.humanize import cell, milliseconds, number
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import Quantity, count, ms, ratio
from tfdoctor.terms.verdict import Cell, Location, Measure, Outcome, Table


class Grid(Record):
    """A table of clean text; ``kinds`` says of each column: text, number or place."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    omitted: int = 0

    def first(self, limit: int) -> "Grid":
        """Return the first rows, and the number of those left out."""
        left_out = max(0, len(self.rows) - limit)
        return replace(self, rows=self.rows[:limit], omitted=self.omitted + left_out)

    def told(self) -> "Grid":
        """Return the columns that say something in any row."""
        return self.only(at for at in range(len(self.columns)) if any(row[at] for row in self.rows))

    def only(self, places: Iterable[int]) -> "Grid":
        """Return the columns at some places."""
        kept = list(places)
        columns, kinds, *rows = (tuple(row[at] for at in kept) for row in (self.columns, self.kinds, *self.rows))
        return replace(self, columns=columns, kinds=kinds, rows=tuple(rows))


def grid(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Grid:
    """Return a table as text, each row as long as the heading."""
    kept = [tuple(row[: len(columns)]) for row in rows]
    padded = [row + ("",) * (len(columns) - len(row)) for row in kept]
    kinds: list[str] = []
    for at in range(len(columns)):
        types = {type(row[at]) for row in padded if row[at] != ""}
        kinds.append("number" if types == {Quantity} else "place" if types == {Location} else "text")
    texts = tuple(tuple(map(cell, row)) for row in padded)
    return Grid(tuple(map(text.name, columns)), tuple(kinds), texts)


def texts(kinds: Mapping[str, str], rows: Iterable[tuple[str, ...]]) -> Grid:
    """Return a table of clean text, by its columns with their kinds."""
    return Grid(tuple(kinds), tuple(kinds.values()), tuple(rows))


def measures(outcome: Outcome) -> list[Measure]:
    """Return the numbers of a verdict's evidence."""
    return [item for item in getattr(outcome, "evidence", ()) if isinstance(item, Measure)]


def grids(outcome: Outcome) -> list[Grid]:
    """Return the tables of a verdict's evidence."""
    evidence = getattr(outcome, "evidence", ())
    return [grid(item.columns, item.rows) for item in evidence if isinstance(item, Table)]


def steps_grid(rows: Sequence[StepRow]) -> Grid:
    """Return the steps with their parts."""
    parts = [part for part in PART_LABELS if any(row.parts_ms.get(part) for row in rows)]
    numbers = dict.fromkeys(["step", "time", *(PART_LABELS[part] for part in parts)], "number")
    cells = []
    for row in rows:
        times = map(milliseconds, (row.total_ms, *(row.parts_ms.get(part, 0.0) for part in parts)))
        cells.append((number(row.number), *times, "yes" if row.steady else "no: outlier"))
    return texts({**numbers, "counted": "text"}, cells)


def pipeline_grid(stages: Sequence[PipelineStage]) -> Grid:
    """Return the stages of the input pipeline, the last one first."""
    columns = ("stage", "written", "where", "own time", "threads", "calls", "critical", "note")
    cells: list[list[Cell]] = []
    depths: list[int] = []  # how many stages consume the elements of each, directly or not
    for stage in stages:
        at = len(depths) if stage.parent is None else stage.parent
        depths.append(depths[at] + 1 if 0 <= at < len(depths) else 0)
        figures = (ms(stage.self_ms), count(stage.parallelism), count(stage.calls))
        name, critical = f"{'· ' * depths[-1]}{stage.name}", "yes" if stage.critical else "no"
        cells.append([name, stage.written, stage.at or "", *figures, critical, stage.note])
    return grid(columns, cells)


def operations_grid(rows: Sequence[OperationRow]) -> Grid:
    """Return the operations, the heaviest first."""
    columns = ("layer", "operation", "own time", "share", "where", "shapes")
    cells: list[list[Cell]] = []
    for row in rows:
        layer, at = row.layer or "no layer", row.at or ""
        cells.append([layer, row.operation, ms(row.self_ms), ratio(row.share), at, row.detail])
    return grid(columns, cells)

"""The history as text and tables, for every rendering."""

from collections.abc import Iterator
from typing import Self

from tfdoctor.diagnosis.history_report import FindingHistory, History, HistoryRun, RunMetric, Series
from tfdoctor.report.history import words
from tfdoctor.report.tables import Grid
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, percent, quantity
from tfdoctor.terms.record import Record

RUNS = "Runs, the newest first"


class SeriesView(Record):
    """A series as text."""

    title: str
    about: str  # the machine, and which runs
    sentences: tuple[str, ...]
    newest: tuple[str, Grid]  # the newest commit and the runs before it, with the title
    others: tuple[tuple[str, Grid], ...]

    @property
    def tables(self) -> tuple[tuple[str, Grid], ...]:
        """All tables with their titles."""
        return (self.newest, *self.others)

    @classmethod
    def of(cls, series: Series) -> Self:
        """Return the view of a series."""
        title = text.name(f"{series.program} {series.arguments}".strip(), 120)
        days = list(dict.fromkeys(filter(None, (words.when(series.runs[at]) for at in (0, -1)))))
        about = f"{text.name(series.machine, 120)}; {counted(len(series.runs), 'run')}"
        last = series.runs[-1]
        what = "commit" if last.commit else "run"
        newest = f"The newest {what}, {words.commit(last)}, and the runs before it"
        tables = {
            "Changes of the level": _changes(series),
            "Findings": _findings(series),
            "Baselines": _baselines(series),
            "Accepted": _accepted(series),
            RUNS: _runs(series),
        }
        return cls(
            title=title,
            about=f"{about}, {' to '.join(days)}" if days else about,
            sentences=tuple(_sentences(series)),
            newest=(newest, _newest(series).told()),
            others=tuple((name, grid.told()) for name, grid in tables.items() if grid.rows),
        )


class HistoryView(Record):
    """What a rendering of a history shows, in order."""

    version: str
    headline: str
    series: tuple[SeriesView, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, history: History) -> Self:
        """Return the view of a history."""
        unread = (f"Not read: {text.name(place, 160)}: {why}" for place, why in history.unread)
        return cls(
            version=history.version,
            headline=words.headline(history),
            series=tuple(map(SeriesView.of, history.series)),
            notes=tuple(unread),
        )


def _sentences(series: Series) -> Iterator[str]:
    yield from words.remarks(series.metrics)
    few = [one for one in series.metrics if one.why_no_changes]
    if few:
        names = ", ".join(words.LABELS[one.metric] for one in few)
        yield f"Too few runs to tell a change of the level from chance: {names} ({few[0].why_no_changes})."
    step = next((one for one in series.metrics if one.metric is RunMetric.STEP), None)
    if step:
        yield f"The step is the {step.what}."
    if any(one.metric is RunMetric.RUN for one in series.metrics):
        yield "The time of the whole run is without tfdoctor's own work."
    yield from (f"{text.capitalized(note)}." for note in series.notes)


def _newest(series: Series) -> Grid:
    """Return the newest commit beside the runs before it."""
    rows = [row for row in map(words.compared, series.metrics) if row]
    columns = ("metric", "newest", "before", "change", "interval", "of runs", "result")
    kinds = ("text", *("number",) * 5, "text")
    return Grid(columns, kinds, tuple(rows))


def _changes(series: Series) -> Grid:
    rows = [
        words.changed(point, metric, series.runs[point.at]) for metric in series.metrics for point in metric.changes
    ]
    columns = ("metric", "level", "change", "since", "day", "accepted")
    return Grid(columns, ("text", "text", "number", "text", "text", "text"), tuple(rows))


def _findings(series: Series) -> Grid:
    rows = tuple(_finding(one, series.runs) for one in series.findings)
    columns = ("finding", "saves", "runs with it", "in the newest run")
    return Grid(columns, ("text", "number", "number", "text"), rows)


def _finding(one: FindingHistory, runs: tuple[HistoryRun, ...]) -> tuple[str, ...]:
    saving = one.last.saving if one.last else None
    known = [found for found in one.found if found is not None]
    many = f"{known.count(True)} of {len(known)}"
    return one.rule, "" if saving is None else percent(saving), many, _became(one, runs)


def _became(one: FindingHistory, runs: tuple[HistoryRun, ...]) -> str:
    """Return what became of a finding."""
    if one.found[-1] is None:
        return "not checked"
    if one.gone is not None:
        return f"gone since {words.commit(runs[one.gone])}"
    since = "" if one.appeared is None else f" since {words.commit(runs[one.appeared])}"
    new = ": new, which fails" if one.new else ""
    return f"present{since}{new}{f', {words.by(one.accepted)}' if one.accepted else ''}"


def _baselines(series: Series) -> Grid:
    columns = ("baseline", "commit", *(words.LABELS[one.metric] for one in series.metrics))
    rows = [
        (text.name(one.name), one.commit[: words.SHORT], *(words.against(one, metric) for metric in series.metrics))
        for one in series.baselines
    ]
    kinds = ("text", "text", *("number" for _ in series.metrics))
    return Grid(columns, kinds, tuple(rows))


def _accepted(series: Series) -> Grid:
    rows = [
        (one.what, one.commit[: words.SHORT], text.name(one.by), one.on, text.name(one.why, 160))
        for one in series.accepted
    ]
    return Grid(("what", "commit", "by", "on", "why"), ("text",) * 5, tuple(rows))


def _runs(series: Series) -> Grid:
    known = {metric for run in series.runs for metric, value in run.values.items() if value}
    metrics = [one.metric for one in series.metrics if one.metric in known]
    rows = []
    for run in reversed(series.runs):
        values = [run.values.get(metric) for metric in metrics]
        shown = [
            quantity(metric.quantity(value)) if value else "unknown"
            for metric, value in zip(metrics, values, strict=True)
        ]
        found = f"{len(run.findings):,}"
        rows.append((words.commit(run), words.when(run), *shown, found, text.name(run.place)))
    first = "commit" if any(run.commit for run in series.runs) else "recorded"
    columns = (first, "day", *(words.LABELS[one] for one in metrics), "findings", "run")
    kinds = ("text", "text", *("number" for _ in metrics), "number", "text")
    return Grid(columns, kinds, tuple(rows))

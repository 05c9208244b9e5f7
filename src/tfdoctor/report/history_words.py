"""The history in words and tables: its headline, what became of each metric, and who accepted what."""

# ruff: noqa: F403, F405 - one import of what a history is made of
from collections.abc import Iterator

from tfdoctor.diagnosis.gates import BudgetState
from tfdoctor.diagnosis.history_report import *
from tfdoctor.report.tables import Grid, texts
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, percent, quantity, quantity_span
from tfdoctor.terms.units import ratio

LABELS = {RunMetric.STEP: "step", RunMetric.RUN: "whole run", RunMetric.MEMORY: "peak memory"}
RUNS = "Runs, the newest first"  # The title of their table

_TIMES = ("longer", "shorter")
# What a value is that is above or below another one.
_DIRECTIONS = {RunMetric.STEP: _TIMES, RunMetric.RUN: _TIMES, RunMetric.MEMORY: ("higher", "lower")}
# Characters of a moment in ISO 8601 up to its day, and up to its minute.
DAY, MINUTE = len("2026-11-28"), len("2026-11-28T12:50")


def headline(history: History) -> str:
    """Return what the gate says, or how many runs there are, as a sentence without an end."""
    runs = sum(len(one.runs) for one in history.series)
    programs = len({one.program for one in history.series})
    what = f"{counted(runs, 'run')} of {counted(programs, 'program')}"
    failed, states = [], history.states
    for series in history.series:
        for metric in series.metrics:
            check = metric.check
            if check.state and check.state.failed:
                change = "not measured" if check.change is None else relative(check.change, metric.metric)
                failed.append(f"{LABELS[metric.metric]} of {text.name(series.program)} {change}")
    failed += [
        f"{finding.rule} of {text.name(one.program)}"
        for one in history.series
        for finding in one.findings
        if finding.new
    ]
    if failed:
        return f"{what}: {counted(len(failed), 'regression')} ({', '.join(failed)})"
    if not states:
        return what
    undecided = states.count(BudgetState.UNCLEAR)
    told = f"{undecided} of {len(states)} checks undecided" if undecided else ""
    others = "no regression in the others" if undecided else "no regression"
    return f"{what}: {', '.join(filter(None, (told, others if undecided < len(states) else '')))}"


def notes(history: History) -> list[str]:
    """Return which runs could not be read."""
    return [f"Not read: {text.name(place, 160)}: {why}" for place, why in history.unread]


def title(series: Series) -> str:
    """Return the program with its arguments."""
    return text.name(f"{series.program} {series.arguments}".strip(), 120)


def about(series: Series) -> str:
    """Return the machine, and which runs they are."""
    days = list(dict.fromkeys(filter(None, (when(series.runs[at]) for at in (0, -1)))))
    runs = f"{text.name(series.machine, 120)}; {counted(len(series.runs), 'run')}"
    return f"{runs}, {' to '.join(days)}" if days else runs


def sentences(series: Series) -> Iterator[str]:
    """Yield why metrics are not compared or which runs are left out, what figures are, and what else changed."""
    reasons: dict[str, list[str]] = {}
    for metric in series.metrics:
        if metric.check.why:
            reasons.setdefault(_reason(metric.check), []).append(LABELS[metric.metric])
    for reason, names in reasons.items():
        yield f"{', '.join(names).capitalize()}: {reason}."
    if few := [one for one in series.metrics if one.why_no_changes]:
        labels = ", ".join(LABELS[one.metric] for one in few)
        yield f"Too few runs to tell a change of the level from chance: {labels} ({few[0].why_no_changes})."
    for metric in series.metrics:
        if metric.metric is RunMetric.STEP:
            yield f"The step is the {metric.what}."
        if metric.metric is RunMetric.RUN:
            yield "The time of the whole run is without tfdoctor's own work."
    yield from (f"{text.capitalized(note)}." for note in series.notes)


def _reason(check: RegressionCheck) -> str:
    """Return why a metric is not compared, or which runs are left out, as a clause."""
    if check.usual is not None:
        return f"compared with the {check.runs} runs {check.why}"
    if check.newest is None:
        return check.why
    return f"{'not compared' if check.state is None else state(check)}, because {check.why}"


def relative(change: float, metric: RunMetric) -> str:
    """Return a relative change of a metric in words: "5 % longer"; a sign could be read as that of a saving."""
    above, below = _DIRECTIONS[metric]
    return f"{percent(abs(change))} {above if change >= 0 else below}"


def commit(run: HistoryRun) -> str:
    """Return the commit of a run, with + where files differed from it; its time where the commit is unknown."""
    if run.commit:
        return f"{run.commit[:SHORT]}{'+' if run.changed else ''}"
    return run.recorded[:MINUTE].replace("T", " ") or text.name(run.place)


def when(run: HistoryRun) -> str:
    """Return the day of the commit, or of the run where that is unknown."""
    return (run.committed or run.recorded)[:DAY]


def state(check: RegressionCheck) -> str:
    """Return what the gate says of a metric; "" without a gate."""
    names = {
        BudgetState.EXCEEDED: f"regression (> {percent(check.limit)})",
        BudgetState.MET: "no regression",
        BudgetState.UNCLEAR: "undecided",
        BudgetState.UNKNOWN: "fails: not measured",
    }
    return names[check.state] if check.state is not None else ""


def against(baseline: NamedBaseline, metric: MetricHistory) -> str:
    """Return how the newest known value compares with a baseline; "" where they are not the same figure."""
    value = baseline.values.get(metric.metric.value)
    newest = next((one for one in reversed(metric.values) if one), None)
    same = metric.metric is not RunMetric.STEP or baseline.step == metric.what
    return relative(newest / value - 1, metric.metric) if value and value > 0 and newest and same else ""


def tables(series: Series) -> dict[str, Grid]:
    """Return the tables by their titles: the newest commit beside the runs before it, and the others with rows."""
    last, labels = series.runs[-1], [LABELS[one.metric] for one in series.metrics]
    newest = f"The newest {'commit' if last.commit else 'run'}, {commit(last)}, and the runs before it"
    columns = dict.fromkeys(("newest", "before", "change", "interval", "of runs"), "number")
    compare = texts({"metric": "text", **columns, "result": "text"}, map(compared, series.metrics))
    findings = {"finding": "text", "saves": "number", "runs with it": "number", "in the newest run": "text"}
    baselines = [
        (text.name(one.name), one.commit[:SHORT], *(against(one, metric) for metric in series.metrics))
        for one in series.baselines
    ]
    accepted = [
        (one.what, one.commit[:SHORT], text.name(one.by), one.on, text.name(one.why, 160))
        for one in series.accepted
    ]
    others = {
        "Changes of the level": _changes(series),
        "Findings": texts(findings, (_finding(one, series.runs) for one in series.findings)),
        "Baselines": texts({"baseline": "text", "commit": "text", **dict.fromkeys(labels, "number")}, baselines),
        "Accepted": texts(dict.fromkeys(("what", "commit", "by", "on", "why"), "text"), accepted),
        RUNS: _runs(series),
    }
    return {newest: compare.told(), **{name: grid.told() for name, grid in others.items() if grid.rows}}


def compared(metric: MetricHistory) -> tuple[str, ...]:
    """Return the newest commit beside the runs before it, as a row.

    The interval of a change is positive in the direction that the change has: "19 to 36 %" longer.
    """
    check, what = metric.check, metric.metric
    change = interval = ""
    if check.change is not None and check.low is not None and check.high is not None:
        change = relative(check.change, what)
        ends = (check.low, check.high) if check.change >= 0 else (-check.high, -check.low)
        interval = quantity_span(*map(ratio, ends))
    values = [quantity(what.quantity(one)) if one else "" for one in (check.newest, check.usual)]
    return (LABELS[what], *values, change, interval, f"{check.runs:,}", state(check))


def _changes(series: Series) -> Grid:
    rows: list[tuple[str, ...]] = []
    for metric in series.metrics:
        for point in metric.changes:
            levels = [quantity(metric.metric.quantity(one)) for one in (point.before, point.after)]
            of_level = (LABELS[metric.metric], " → ".join(levels), relative(point.share, metric.metric))
            run, refused = series.runs[point.at], "not accepted" if point.share > 0 else ""
            rows.append((*of_level, commit(run), when(run), by(point.accepted) if point.accepted else refused))
    kinds = {"metric": "text", "level": "text", "change": "number"}
    return texts({**kinds, **dict.fromkeys(("since", "day", "accepted"), "text")}, rows)


def _finding(one: FindingHistory, runs: tuple[HistoryRun, ...]) -> tuple[str, ...]:
    saving = one.last.saving
    known = [found for found in one.found if found is not None]
    if one.found[-1] is None:
        became = "not checked"
    elif one.gone is not None:
        became = f"gone since {commit(runs[one.gone])}"
    else:
        since = "" if one.appeared is None else f" since {commit(runs[one.appeared])}"
        new, accepted = ": new, which fails" if one.new else "", f", {by(one.accepted)}" if one.accepted else ""
        became = f"present{since}{new}{accepted}"
    return one.rule, "" if saving is None else percent(saving), f"{known.count(True)} of {len(known)}", became


def by(accepted: Accepted) -> str:
    """Return who accepted a change, when and why."""
    return f"accepted by {text.name(accepted.by)}, {accepted.on}: {text.name(accepted.why, 160)}"


def _runs(series: Series) -> Grid:
    known = {metric for run in series.runs for metric, value in run.values.items() if value}
    metrics = [one.metric for one in series.metrics if one.metric in known]
    rows: list[tuple[str, ...]] = []
    for run in reversed(series.runs):
        values = [(metric, run.values.get(metric)) for metric in metrics]
        shown = [quantity(metric.quantity(value)) if value else "unknown" for metric, value in values]
        rows.append((commit(run), when(run), *shown, f"{len(run.findings):,}", text.name(run.place)))
    first = "commit" if any(run.commit for run in series.runs) else "recorded"
    numbers = dict.fromkeys((*(LABELS[one] for one in metrics), "findings"), "number")
    return texts({first: "text", "day": "text", **numbers, "run": "text"}, rows)

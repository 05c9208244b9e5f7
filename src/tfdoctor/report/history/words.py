"""The history in words: its headline, what became of each metric, and who accepted what."""

from collections.abc import Iterator, Sequence

from tfdoctor.diagnosis.gates import BudgetState
from tfdoctor.diagnosis.history_report import (
    Accepted,
    ChangePoint,
    History,
    HistoryRun,
    MetricHistory,
    NamedBaseline,
    RegressionCheck,
    RunMetric,
    Series,
)
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, percent, quantity, quantity_span
from tfdoctor.terms.units import ratio

LABELS = {RunMetric.STEP: "step", RunMetric.RUN: "whole run", RunMetric.MEMORY: "peak memory"}

_TIMES = ("longer", "shorter")
# What a value is that is above or below another one.
_DIRECTIONS = {RunMetric.STEP: _TIMES, RunMetric.RUN: _TIMES, RunMetric.MEMORY: ("higher", "lower")}
SHORT = 9  # Characters of a commit's hash that are shown: git's own number in a large repository


def headline(history: History) -> str:
    """Return what the gate says, or how many runs there are, as a sentence without an end."""
    runs = sum(len(one.runs) for one in history.series)
    programs = len({one.program for one in history.series})
    what = f"{counted(runs, 'run')} of {counted(programs, 'program')}"
    checks = [(one, metric, check) for one in history.series for metric, check in _checks(one)]
    failed = [
        f"{LABELS[metric]} of {text.name(one.program)}{_by(check, metric)}"
        for one, metric, check in checks
        if check.failed
    ]
    failed += [
        f"{finding.rule} of {text.name(one.program)}"
        for one in history.series
        for finding in one.findings
        if finding.new
    ]
    if failed:
        return f"{what}: {counted(len(failed), 'regression')} ({', '.join(failed)})"
    states = [check.state for _, _, check in checks if check.state is not None]
    if not states:
        return what
    undecided = states.count(BudgetState.UNCLEAR)
    told = f"{undecided} of {len(states)} checks undecided" if undecided else ""
    others = "no regression in the others" if undecided else "no regression"
    return f"{what}: {', '.join(filter(None, (told, others if undecided < len(states) else '')))}"


def _by(check: RegressionCheck, metric: RunMetric) -> str:
    return " not measured" if check.change is None else f" {relative(check.change, metric)}"


def _checks(series: Series) -> list[tuple[RunMetric, RegressionCheck]]:
    return [(one.metric, one.check) for one in series.metrics if one.check]


def relative(change: float, metric: RunMetric) -> str:
    """Return a relative change of a metric in words: "5 % longer"; a sign could be read as that of a saving."""
    above, below = _DIRECTIONS[metric]
    return f"{percent(abs(change))} {above if change >= 0 else below}"


def _interval(check: RegressionCheck) -> str:
    """Return the interval of a change, positive in the direction that the change has: "19 to 36 %" longer."""
    if check.change is None or check.low is None or check.high is None:
        return ""
    ends = (check.low, check.high) if check.change >= 0 else (-check.high, -check.low)
    return quantity_span(*map(ratio, ends))


def commit(run: HistoryRun) -> str:
    """Return the commit of a run, with + where files differed from it; its time where the commit is unknown."""
    if run.commit:
        return f"{run.commit[:SHORT]}{'+' if run.changed else ''}"
    return run.recorded[:MINUTE].replace("T", " ") or text.name(run.place)


def when(run: HistoryRun) -> str:
    """Return the day of the commit, or of the run where that is unknown."""
    return _day(run.committed or run.recorded)


def _day(moment: str) -> str:
    return moment[:DAY]


# Characters of a moment in ISO 8601 up to its day, and up to its minute.
DAY, MINUTE = len("2026-11-28"), len("2026-11-28T12:50")


def state(check: RegressionCheck) -> str:
    """Return what the gate says of a metric; "" without a gate."""
    names = {
        BudgetState.EXCEEDED: f"regression (> {percent(check.limit)})",
        BudgetState.MET: "no regression",
        BudgetState.UNCLEAR: "undecided",
        BudgetState.UNKNOWN: "fails: not measured",
    }
    return names[check.state] if check.state is not None else ""


def compared(metric: MetricHistory) -> tuple[str, ...]:
    """Return the newest commit beside the runs before it, as a row; () where there is nothing to compare."""
    check, what = metric.check, metric.metric
    if check is None:
        return ()
    values = [quantity(what.quantity(one)) if one else "" for one in (check.newest, check.usual)]
    change = "" if check.change is None else relative(check.change, what)
    return (LABELS[what], *values, change, _interval(check), f"{check.runs:,}", state(check))


def remarks(metrics: Sequence[MetricHistory]) -> Iterator[str]:
    """Yield why metrics are not compared, or which runs are left out, as sentences: one for each reason."""
    reasons: dict[str, list[str]] = {}
    for metric in metrics:
        if metric.check is not None and metric.check.why:
            reasons.setdefault(_reason(metric.check), []).append(LABELS[metric.metric])
    for reason, names in reasons.items():
        yield f"{', '.join(names).capitalize()}: {reason}."


def _reason(check: RegressionCheck) -> str:
    """Return why a metric is not compared, or which runs are left out, as a clause."""
    if check.usual is not None:
        return f"compared with the {check.runs} runs {check.why}"
    if check.newest is None:
        return check.why
    verdict = "not compared" if check.state is None else state(check)
    return f"{verdict}, because {check.why}"


def changed(point: ChangePoint, metric: MetricHistory, run: HistoryRun) -> tuple[str, ...]:
    """Return a change point as a row: the metric, the change, its share, the run, and who accepted it."""
    levels = [quantity(metric.metric.quantity(one)) for one in (point.before, point.after)]
    return (
        LABELS[metric.metric],
        f"{levels[0]} \N{RIGHTWARDS ARROW} {levels[1]}",
        relative(point.share, metric.metric),
        commit(run),
        when(run),
        by(point.accepted) if point.accepted else "not accepted" if point.share > 0 else "",
    )


def by(accepted: Accepted) -> str:
    """Return who accepted a change, when and why."""
    return f"accepted by {text.name(accepted.by)}, {accepted.on}: {text.name(accepted.why, 160)}"


def against(baseline: NamedBaseline, metric: MetricHistory) -> str:
    """Return how the newest known value compares with a baseline; "" where they are not the same figure."""
    value = baseline.values.get(metric.metric.value)
    newest = next((one for one in reversed(metric.values) if one), None)
    same = metric.metric is not RunMetric.STEP or baseline.step == metric.what
    if not (value and value > 0 and newest and same):
        return ""
    return relative(newest / value - 1, metric.metric)

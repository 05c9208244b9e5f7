"""What became of the findings: matched by rule and file, because lines and sentences change with the program.

The script that ran is one place in both runs, whatever its name is, and so is a line with the same text in a file
that was renamed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from tfdoctor.compare.reports import findings, step_of
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import AmountKind, FindingChange, FindingState
from tfdoctor.diagnosis.results import Result
from tfdoctor.terms.humanize import location
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Finding, Healthy

ORDER = tuple(FindingState)  # New findings are shown first
# Share of the step by which a saving must change to be called worse or better, however certain the step is.
SMALLEST = 0.02
SMALLEST_OF_RUN = 0.02  # Likewise of the run, where a finding saves nothing of each step: a run is measured once


class Found(Record, kw_only=True):
    """A finding about a run."""

    result: Result
    summary: str
    ms: float | None  # what it saves or takes of the compared step, which may have the cost of the profiler
    kind: AmountKind | None  # what that time is
    path: str  # of the first line to change; "" where none is known
    line: str  # the hash of that line
    in_script: bool  # of the run's command, whose path either may have more of


def changes(before: Diagnosis, after: Diagnosis, certain: float) -> tuple[FindingChange, ...]:
    """Return all findings of two runs, new ones first.

    ``certain`` is the smallest relative difference of the step that the runs can show: a saving that changes by a
    smaller share of the step is the same. A finding is new or gone only if its rule was checked in the other run.
    """
    least_ms = max(certain, SMALLEST) * (step_of(before) or step_of(after) or 0.0)
    first, last = list(_found(before)), list(_found(after))
    leading = [_leading(report) for report in (before, after)]
    checked = [
        {one.rule.name for one in report.results if isinstance(one.outcome, Finding | Healthy)}
        for report in (before, after)
    ]
    made: list[FindingChange] = []
    for now in last:
        earlier = _same(now, first)
        absent = FindingState.NEW if now.result.rule.name in checked[0] else FindingState.UNCHECKED_BEFORE
        made.append(_change(_state(earlier, now, least_ms) if earlier else absent, now, earlier, now, leading))
    for one in first:
        if _same(one, last) is None:
            gone = one.result.rule.name in checked[1]
            state = FindingState.GONE if gone else FindingState.UNCHECKED_AFTER
            made.append(_change(state, one, one, None, leading))

    def amount(one: FindingChange) -> float:  # of the run, where it saves nothing of each step
        return one.after_ms or one.before_ms or one.after_run_ms or one.before_run_ms or 0.0

    return tuple(sorted(made, key=lambda one: (ORDER.index(one.state), -amount(one))))


def _found(report: Diagnosis) -> Iterator[Found]:
    script = next((word for word in report.subject.command if word.endswith(".py")), "")
    for result, finding in findings(report):
        amount, kind = result.saving or result.takes, AmountKind.SAVING if result.saving else AmountKind.COST
        at = next((remedy.at for remedy in finding.remedies if remedy.at), None)
        path = at.path if at else ""
        names = [PurePosixPath(one.replace("\\", "/")).parts[::-1] for one in (script, path)]
        yield Found(
            result=result,
            summary=finding.summary,
            ms=amount.share * (step_of(report) or 0.0) if amount else None,
            kind=kind if amount else None,
            path=path,
            line=report.lines.get(location(at), "") if at else "",
            in_script=all(names) and all(one == other for one, other in zip(*names, strict=False)),
        )


def _leading(report: Diagnosis) -> Mapping[str, str]:
    """Return for each finding the rule of the one that it belongs to, "" where it stands alone."""
    alone = {result.rule.name: "" for result, _ in findings(report)}
    return alone | {
        result.rule.name: entry.result.rule.name
        for entry in report.entries
        for result in (*entry.symptoms, *entry.same)
    }


def _same(one: Found, others: Sequence[Found]) -> Found | None:
    """Return the other finding of the same rule in the same file, in the script, or at a line of the same text."""
    matching = [other for other in others if other.result.rule.name == one.result.rule.name]
    in_file = (other for other in matching if other.path == one.path)
    in_script = (other for other in matching if one.in_script and other.in_script)
    by_line = (other for other in matching if one.line and one.line == other.line)
    return next(in_file, None) or next(in_script, None) or next(by_line, None)


def _state(earlier: Found, now: Found, least_ms: float) -> FindingState:
    moved, least = float((now.result.severity or 0) - (earlier.result.severity or 0)), 0.0
    first, last = earlier.result.run, now.result.run
    if earlier.ms is not None and now.ms is not None and earlier.kind is now.kind:
        moved, least = now.ms - earlier.ms, least_ms
    elif first and last and not (earlier.kind or now.kind):
        moved, least = last.share - first.share, SMALLEST_OF_RUN
    if abs(moved) <= least:
        return FindingState.SAME
    return FindingState.WORSE if moved > 0 else FindingState.BETTER


def _change(
    state: FindingState,
    shown: Found,
    earlier: Found | None,
    now: Found | None,
    leading: Sequence[Mapping[str, str]],
) -> FindingChange:
    """Return a finding; it is shown by another where it belongs to that in each run that has it."""
    result, rule = shown.result, shown.result.rule.name
    first_run, last_run = (one.result.run if one else None for one in (earlier, now))
    of_runs = [of_run[rule] for of_run in leading if rule in of_run]
    return FindingChange(
        state=state,
        rule=rule,
        summary=shown.summary,
        severity=result.severity.name.lower() if result.severity else "",
        at=result.place,
        before_ms=earlier.ms if earlier else None,
        before_kind=earlier.kind if earlier else None,
        after_ms=now.ms if now else None,
        after_kind=now.kind if now else None,
        shown_by=of_runs[-1] if all(of_runs) else "",
        before_run_ms=first_run.ms if first_run else None,
        after_run_ms=last_run.ms if last_run else None,
    )

"""What became of the findings: matched by rule and file, because lines and sentences change with the program.

The script that ran is one place in both runs, whatever its name is, and so is a line with the same text in a file
that was renamed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from tfdoctor.compare.reports import Found, findings, step_of
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import FindingChange, FindingState
from tfdoctor.diagnosis.entries import entries
from tfdoctor.terms.humanize import location
from tfdoctor.terms.verdict import Finding, Healthy

ORDER = tuple(FindingState)  # New findings are shown first
# Share of the step by which a saving must change to be called worse or better, however certain the step is.
SMALLEST = 0.02
SMALLEST_OF_RUN = 0.02  # Likewise of the run, where a finding saves nothing of each step: a run is measured once


def changes(before: Diagnosis, after: Diagnosis, certain: float) -> tuple[FindingChange, ...]:
    """Return all findings of two runs, new ones first.

    ``certain`` is the smallest relative difference of the step that the runs can show: a saving that changes by a
    smaller share of the step is the same. A finding is new or gone only if its rule was checked in the other run.
    """
    least_ms = max(certain, SMALLEST) * (step_of(before) or step_of(after) or 0.0)
    found = _matched(before, after, least_ms)
    leading = _leading(before), _leading(after)
    shown = (replace(change, shown_by=_shown_by(change.rule, leading)) for change in found)
    return tuple(sorted(shown, key=lambda change: (ORDER.index(change.state), -_amount(change))))


def _amount(change: FindingChange) -> float:
    """Return the time to rank by: what it saves of the run, where it saves nothing of each step."""
    per_step = change.after_ms or change.before_ms
    return per_step or change.after_run_ms or change.before_run_ms or 0.0


def _matched(before: Diagnosis, after: Diagnosis, least_ms: float) -> Iterator[FindingChange]:
    for now in findings(after):
        earlier = _same(now, after, before)
        absent = FindingState.NEW if now.rule in _checked(before) else FindingState.UNCHECKED_BEFORE
        yield _change(_state(earlier, now, least_ms) if earlier else absent, earlier, now)
    for earlier in findings(before):
        if _same(earlier, before, after) is None:
            gone = earlier.rule in _checked(after)
            yield _change(FindingState.GONE if gone else FindingState.UNCHECKED_AFTER, earlier, None)


def _checked(report: Diagnosis) -> set[str]:
    """Return the rules that have a verdict about the run."""
    return {result.rule.name for result in report.results if isinstance(result.outcome, Finding | Healthy)}


def _shown_by(rule: str, leading: Sequence[Mapping[str, str]]) -> str:
    """Return the finding that another one belongs to in each run that has it; "" where it stands alone in one."""
    of_runs = [of_run[rule] for of_run in leading if rule in of_run]
    return of_runs[-1] if all(of_runs) else ""


def _leading(report: Diagnosis) -> Mapping[str, str]:
    """Return for each finding the rule of the one that it belongs to, "" where it stands alone."""
    alone = {found.rule: "" for found in findings(report)}
    return alone | {
        result.rule.name: entry.result.rule.name
        for entry in entries(report)
        for result in (*entry.symptoms, *entry.same)
    }


def _same(one: Found, its: Diagnosis, other: Diagnosis) -> Found | None:
    """Return the other finding of the same rule in the same file, in the script, or at a line of the same text."""
    matching = [found for found in findings(other) if found.rule == one.rule]
    in_file = (found for found in matching if _path(found) == _path(one))
    in_script = (found for found in matching if _in_script(one, its) and _in_script(found, other))
    by_line = (found for found in matching if _text(one, its) and _text(one, its) == _text(found, other))
    return next(in_file, None) or next(in_script, None) or next(by_line, None)


def _text(finding: Found, report: Diagnosis) -> str:
    """Return the hash of the line by which a finding is matched; "" where it is not known."""
    return report.lines.get(location(finding.changes), "") if finding.changes else ""


def _path(finding: Found) -> str:
    return finding.changes.path if finding.changes else ""


def _in_script(finding: Found, report: Diagnosis) -> bool:
    """Whether a finding is in the script of the run's command, whose path either may have more of."""
    script = next((word for word in report.subject.command if word.endswith(".py")), "")
    paths = [PurePosixPath(path.replace("\\", "/")).parts[::-1] for path in (script, _path(finding))]
    return all(paths) and all(one == other for one, other in zip(*paths, strict=False))


def _state(earlier: Found, now: Found, least_ms: float) -> FindingState:
    moved, least = float((now.result.severity or 0) - (earlier.result.severity or 0)), 0.0
    runs = earlier.result.run, now.result.run
    before_ms, after_ms = earlier.amount_ms, now.amount_ms
    if before_ms is not None and after_ms is not None and earlier.kind is now.kind:
        moved, least = after_ms - before_ms, least_ms
    elif runs[0] and runs[1] and not (earlier.amount or now.amount):
        moved, least = runs[1].share - runs[0].share, SMALLEST_OF_RUN
    if abs(moved) <= least:
        return FindingState.SAME
    return FindingState.WORSE if moved > 0 else FindingState.BETTER


def _change(state: FindingState, earlier: Found | None, now: Found | None) -> FindingChange:
    shown = now or earlier
    assert shown is not None  # noqa: S101 - one of them is given
    severity = shown.result.severity
    return FindingChange(
        state=state,
        rule=shown.rule,
        summary=shown.finding.summary,
        severity=severity.name.lower() if severity else "",
        at=shown.result.place,
        before_ms=earlier.amount_ms if earlier else None,
        before_kind=earlier.kind if earlier else None,
        after_ms=now.amount_ms if now else None,
        after_kind=now.kind if now else None,
        before_run_ms=earlier.run_ms if earlier else None,
        after_run_ms=now.run_ms if now else None,
    )

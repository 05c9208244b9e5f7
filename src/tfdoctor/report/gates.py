"""Budgets and known findings in words: what the user demands of a run, and whether it keeps to it."""

from collections.abc import Sequence

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.gates import BudgetCheck, BudgetState, KnownFinding
from tfdoctor.report.tables import Grid
from tfdoctor.terms import text
from tfdoctor.terms.humanize import UNKNOWN, counted, location, quantity, quantity_span
from tfdoctor.terms.record import Record

KNOWN = "known (in the baseline)"

# In place of an interval: of what is measured once, and of a figure of which a part is unknown.
ONE_FIGURE, BOUNDS = "one figure", "between these for certain"
NAMED = 5  # Findings that are gone and named; the JSON report has all


class BudgetLine(Record):
    """One budget as text."""

    key: str
    limit: str  # "at most 20.0 ms"
    value: str
    interval: str
    state: str  # "met", "exceeded", "not reached", "undecided" or "unknown"
    remark: str  # what the state means, where it does not say it itself
    failed: bool
    where: str  # the line of the settings

    @property
    def told(self) -> str:
        """The budget in one line."""
        certain = self.interval in {ONE_FIGURE, BOUNDS}
        interval = self.interval if certain else f"95 %: {self.interval}"
        measured = f"{self.value} ({interval}), " if self.interval else ""
        remark = f"; {self.remark}" if self.remark else ""
        return f"{measured}{self.limit}{remark}"


class BudgetSection(Record):
    """All budgets of a run."""

    verdict: str
    lines: tuple[BudgetLine, ...]

    @property
    def grid(self) -> Grid:
        """The budgets as a table."""
        columns = ("budget", "limit", "measured", "95 % interval", "result")
        rows: list[tuple[str, ...]] = []
        for line in self.lines:
            result = f"{line.state}: {line.remark}" if line.remark else line.state
            rows.append((line.key, line.limit, line.value, line.interval, result))
        return Grid(columns, ("text",) * len(columns), tuple(rows))


def budget_section(checks: Sequence[BudgetCheck]) -> BudgetSection | None:
    """Return the budgets as text; None without any."""
    if not checks:
        return None
    failed = [f"{check.key} is {_state(check)}" for check in checks if check.failed]
    undecided = [check.key for check in checks if check.undecided]
    verdict: list[str] = []
    if failed:
        budgets = counted(len(failed), "budget fails", "budgets fail").capitalize()
        verdict.append(f"{budgets}: {', '.join(failed)}.")
    if undecided:
        budgets = counted(len(undecided), "budget is", "budgets are").capitalize()
        verdict.append(f"{budgets} undecided: {', '.join(undecided)}.")
    return BudgetSection(" ".join(verdict), tuple(map(_line, checks)))


def budget_message(check: BudgetCheck) -> str:
    """Return what is wrong with a budget that fails, in one sentence."""
    line = _line(check)
    return f"Budget {check.key} {line.state}: {line.told}."


def _line(check: BudgetCheck) -> BudgetLine:
    value, interval = _measured(check)
    remark = ""
    if check.undecided:
        holds = "the interval contains the limit (exit code 4)"
        remark = (
            f"{holds}, because {text.prose(check.why)}" if check.why else f"{holds}; record more steps to decide it"
        )
    elif check.state is BudgetState.UNKNOWN:
        remark = f"it fails, because {text.prose(check.why)}"
    return BudgetLine(
        key=check.key,
        limit=f"at {'least' if check.at_least else 'most'} {quantity(check.limit)}",
        value=value,
        interval=interval,
        state=_state(check),
        remark=remark,
        failed=check.failed,
        where=location(check.at),
    )


def _measured(check: BudgetCheck) -> tuple[str, str]:
    """Return the figure and its interval, or what stands in its place."""
    span = quantity_span(check.low, check.high) if check.low and check.high else ""
    if check.value is None:
        return (span, BOUNDS) if span else (UNKNOWN, "")
    return quantity(check.value), span or ONE_FIGURE


def _state(check: BudgetCheck) -> str:
    missed = check.at_least and check.state is BudgetState.EXCEEDED
    if check.undecided:
        return "undecided"
    return "not reached" if missed else check.state.value


def baseline_sentences(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return how many findings the baseline knows, and which of its findings are gone; () without a baseline."""
    use = diagnosis.baseline
    if use is None:
        return ()
    of_hosts = [one for one in diagnosis.hosts.findings if not one.shown] if diagnosis.hosts else []
    marks = [one.known for one in diagnosis.results] + [one.known for one in of_hosts]
    marks = [mark for mark in marks if mark is not None]
    known, new = counted(marks.count(True), "finding"), counted(marks.count(False), "finding")
    first = f"Baseline {text.name(use.file)}: {known} known, {new} new."
    return (first, _gone(use.gone)) if use.gone else (first,)


def _gone(gone: Sequence[KnownFinding]) -> str:
    names = [text.name(one.rule) + (f" in {text.name(one.file)}" if one.file else "") for one in gone[:NAMED]]
    more = [f"{len(gone) - NAMED} more"] if len(gone) > NAMED else []
    verb = "is" if len(gone) == 1 else "are"
    findings = counted(len(gone), "finding").capitalize()
    return f"{findings} of the baseline {verb} gone ({', '.join([*names, *more])}): run --write-baseline again."

"""Reports of runs over commits, for tests."""

from datetime import UTC, datetime, timedelta

from tests.kit import *
from tests.report import diagnoses
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.history_report import Accepted, History
from tfdoctor.diagnosis.work import PhaseRow
from tfdoctor.history.runs import KeptHistory, ReadRun, named
from tfdoctor.history.series import Demand, history
from tfdoctor.terms.kinds import Phase

FIRST = datetime(2026, 3, 1, 9, tzinfo=UTC)

NOISE = 0.02


def commit(number: int) -> str:
    """Return the hash of a commit; the first nine digits tell it from the others."""
    return f"{number + 10:03x}abcdef".ljust(40, "0")


def moment(day: int) -> str:
    return (FIRST + timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ")


def report(day: int, step_ms: float = 50.0, **changes: Any) -> Diagnosis:
    """Return the report of a run of the commit of a day: its run takes 200 steps, its memory does not change."""
    base = diagnoses.full()
    subject = replace(
        base.subject,
        command=("python", "train.py", "--epochs", "2"),
        commit=commit(day),
        committed=moment(day),
        recorded=moment(day),
        changed=False,
    )
    account = diagnoses.ALL["run"]().run
    assert account is not None
    steps = PhaseRow(phase=Phase.STEPS, ms=200 * step_ms)
    account = replace(account, rows=(steps,), total_ms=steps.ms, peak_bytes=3e9)
    conditions = replace(base.conditions, untraced_ms=step_ms)
    made = replace(base, subject=subject, run=account, conditions=conditions)
    of_subject = {name: changes.pop(name) for name in SUBJECT & set(changes)}
    return replace(made, subject=replace(made.subject, **of_subject), **changes)


SUBJECT = {"command", "commit", "committed", "recorded", "changed", "device_name", "framework"}


def noisy(levels: Sequence[float], seed: int = 0) -> list[Diagnosis]:
    """Return reports of steps around these levels, in ms."""
    draw = random.Random(seed)
    return [report(day, level * draw.lognormvariate(0, NOISE)) for day, level in enumerate(levels)]


def read(reports: Sequence[Diagnosis]) -> list[ReadRun]:
    return [ReadRun.of(f"runs/{at:02}/report.json", one) for at, one in enumerate(reports)]


def followed(
    reports: Sequence[Diagnosis],
    kept: KeptHistory | None = None,
    unread: Sequence[tuple[str, str]] = (),
    **demand: Any,
) -> History:
    """Return the history of reports; all that is not asked for is as without options."""
    titles = {result.rule.name: result.rule.doc.title for one in reports for result in one.results}
    asked = Demand(**{"last": 20, **demand})
    return history(read(reports), kept or KeptHistory(), asked, titles, unread)


def regressed() -> History:
    """Return a history with a baseline, an accepted regression, a new one, and a report that cannot be read."""
    runs = noisy([50.0] * 12 + [60.0] * 11 + [75.0])
    accepted = Accepted("train.py", "step-ms", commit(12), "Ann", "2026-03-20", "larger crops")
    kept = KeptHistory().with_entry(named("release-1", read(runs[:1])[0])).with_entry(accepted)
    unread = [("runs/30/report.json", "runs/30/report.json is not JSON.")]
    return followed(runs, kept, unread, limit=0.05)

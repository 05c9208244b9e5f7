"""The history of runs: series, order, findings, and what was accepted."""

from tests.facts.kit import Told, fields
from tests.history.made import commit, followed, moment, noisy, read, report
from tests.kit import *
from tests.report import diagnoses
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.history_report import History, Series
from tfdoctor.history.runs import KeptHistory, ReadRun, accepted, named, of_program
from tfdoctor.terms.verdict import Healthy, Severity

TOLD = Told()
RULE = "input-bound"


def series(*runs: Diagnosis) -> dict[str, object]:
    """Return the series that runs are in: their runs in their order, notes, and how the first is measured."""
    found = followed(runs).series
    (first, *_) = found
    return {
        "runs": [(*(run.commit[:3] for run in one.runs), *(run.recorded for run in one.runs)) for one in found],
        "notes": first.notes,
        "values": [run.values for run in first.runs],
        "step": fields(first.metrics[0], "what values"),
    }


def with_one(**changes: Any) -> list[Diagnosis]:
    """Return three runs, of which that in the middle is another."""
    versions = {"framework": {"tensorflow": "2.20.0"}}
    return [report(day, **(versions | (changes if day == 1 else {}))) for day in range(3)]


def ended_early(made: Diagnosis, *, early: bool = True) -> Diagnosis:
    assert made.run is not None
    return replace(made, run=replace(made.run, ended_early=early))


EVEN = noisy([50.0] * 3)
NO_COMMIT: dict[str, Any] = {"commit": "", "committed": ""}
UNKNOWN = replace(EVEN[1], conditions=replace(EVEN[1].conditions, untraced_ms=None))

TOLD[series] = {
    "in the order of their commits": (report(2), report(1, recorded=moment(40)), report(0)),
    "else of their recording": (report(2, **NO_COMMIT), report(0, **NO_COMMIT)),
    "another program": with_one(command=("python", "other.py")),
    "other arguments": with_one(command=("python", "train.py", "--epochs", "3")),
    "another machine": with_one(device_name="another GPU"),
    "another version belongs to the series, and is noted": with_one(framework={"tensorflow": "2.21.0"}),
    "all steps without the profiler's cost": EVEN,
    "all steps are of one kind": (EVEN[0], UNKNOWN, EVEN[2]),
    "one run, and its metrics in their units": report(0),
    "a run that was ended early among whole ones": (EVEN[0], ended_early(EVEN[1]), EVEN[2]),
    "a run that was ended early alone": ended_early(EVEN[1]),
}


@TOLD
def findings_of_a_run_that_was_ended_early_are_weighed_by_the_step() -> object:
    base = diagnoses.run()
    both = (ReadRun.of("a", ended_early(base, early=early)) for early in (False, True))
    of_step = {one.rule.name: one.saving.share for one in base.results if one.saving}
    of_run = {one.rule.name: one.run.share for one in base.results if one.run}
    weighed = ({name: one.saving for name, one in read.run.findings.items()} for read in both)
    return dict(
        zip(("of the step", "of the run", "whole", "ended early"), (of_step, of_run, *weighed), strict=True)
    )


# A regression

REGRESSED = [50.0] * 12 + [60.0] * 12
RUNS = noisy(REGRESSED)
NEW = [*noisy([*REGRESSED, 75.0])]
SLOW = [report(12, 60.0), report(12, 61.0), report(12, 60.5)]
EDITED = replace(SLOW[0], subject=replace(SLOW[0].subject, changed=True))


def told(history: History) -> dict[str, object]:
    """Return what is said of the step and of the command."""
    (one,) = history.series
    step = one.metrics[0]
    changes = {one.runs[change.at].commit[:3]: change for change in step.changes}
    return {"failed": history.failed, **fields(step, "why_no_changes check")} | changes


def accepting(history: History, *entries: tuple[str, str]) -> KeptHistory:
    kept = KeptHistory()
    for what, at in entries:
        entry = accepted(what, at, history.series, by="Ann", why="larger crops")
        kept = kept.with_entry(replace(entry, on="2026-03-01"))
    return kept


def compared(runs: list[Diagnosis], limit: float, *entries: tuple[str, str], last: int = 20) -> dict[str, object]:
    """Return what is said of runs with a limit once changes were accepted."""
    kept = accepting(followed(runs, limit=limit), *entries)
    return told(followed(runs, kept, limit=limit, last=last))


TOLD[compared] = {
    "a regression fails": (RUNS, 0.1),
    "until it is accepted": (RUNS, 0.1, ("step-ms", commit(12)[:9]), ("run-s", commit(12)[:9])),
    "a new regression after an accepted one fails": (NEW, 0.1, ("step-ms", commit(12))),
    "a regression that was mended": (noisy([50.0] * 10 + [60.0] * 7 + [50.0] * 7), 0.1),
    "three runs decide nothing": (noisy([50.0, 50.0, 90.0]), 0.05),
    "runs of one commit are judged together": ([*noisy([50.0] * 12), *SLOW], 0.05),
    "unless files differed": ([*noisy([50.0] * 12), *SLOW, EDITED], 0.05),
}


@TOLD
def a_regression_that_is_older_than_the_last_runs() -> object:
    return compared(RUNS, 0.1, last=8)


# Findings


def without(made: Diagnosis, rule: str = RULE) -> Diagnosis:
    """Return a report in which a rule found nothing."""
    nothing = Healthy(summary="nothing")
    results = (replace(one, outcome=nothing) if one.rule.name == rule else one for one in made.results)
    return replace(made, results=tuple(results))


def finding(series: Series) -> object:
    (one,) = (one for one in series.findings if one.rule == RULE)
    return fields(one, "found appeared gone")


SILENT = replace(report(2), results=tuple(one for one in report(2).results if one.rule.name != RULE))
WITH_NEW = [*(without(report(day)) for day in range(6)), report(6)]

TOLD[lambda *runs: finding(followed(runs).series[0])] = {
    "a finding appears and goes": (without(report(0)), report(1), report(2), without(report(3))),
    "and is neither where its rule was not checked": (report(0), SILENT),
}


def failing(runs: list[Diagnosis], severity: Severity | None = Severity.WARNING, *, kept: bool = False) -> object:
    known = accepting(followed(runs), (RULE, commit(6))) if kept else KeptHistory()
    history = followed(runs, known, severity=severity)
    return history.failed, *(one.rule for one in history.series[0].findings if one.new)


TOLD[failing] = {
    "a new finding fails nothing without a severity": (WITH_NEW, None),
    "a new finding fails": (WITH_NEW,),
    "a new finding after too few runs does not": (WITH_NEW[2:],),
}
TOLD.add("a new finding that was accepted does not", lambda: failing(WITH_NEW, kept=True))

# What is kept

TWO_PROGRAMS = [report(0), report(0, command=("python", "other.py"))]

TOLD.add("a baseline has the figures of its run", lambda: named("release-1", read([report(3, 40.0)])[0]))
TOLD[lambda runs, what, at: accepting(followed(runs), (what, at)).accepted] = {
    "accepted at no commit": (RUNS, "step-ms", "fff"),
    "accepted at one of 24 commits": (RUNS, "step-ms", "0"),
    "an unknown metric is accepted": (RUNS, "step", commit(3)),
    "a rule without a finding is accepted": (RUNS, "retracing", commit(3)),
    "accepted without git": ([report(0, **NO_COMMIT)], "step-ms", "fff"),
    "accepted of two programs": (TWO_PROGRAMS, "step-ms", commit(0)),
}

test_histories = TOLD.test("histories")


def test_a_program_without_a_run_is_an_error() -> None:
    runs = read([report(0)])
    assert of_program(runs, "train.py") == runs
    with pytest.raises(InputError, match=r"no run of 'trian\.py': did you mean 'train\.py'\?"):
        of_program(runs, "trian.py")

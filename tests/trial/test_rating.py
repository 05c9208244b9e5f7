"""The severity of a finding whose change was tried: it follows what was measured, where that is less."""

from tests.trial.kit import *
from tfdoctor.stored import report as stored_report

PROMISED = Saving(ms_per_step=13.0, share=0.25, bound=Bound.EXPECTED, how="By the step model.")
OF_RUN = RunSaving(
    ms=9.0, share=0.05, rated_share=0.20, recurs=Recurrence.PER_CALL, each_ms=1.0, times=9,
    bound=Bound.EXPECTED,
)  # fmt: skip
LITTLE = replace(HELPS, share=0.1, low=0.06, high=0.14)
WORST = replace(full().results[0], saving=PROMISED, run=None, severity=Severity.CRITICAL)
OTHERS = tuple(one for one in full().results if not isinstance(one.outcome, Finding))
PROMISING = replace(full(), results=(WORST, *OTHERS))
"""A report whose only finding is critical by its promise, a quarter of the step."""


def after(measured: Measured, diagnosis: Diagnosis = PROMISING, training: TrainingMatch | None = None) -> Diagnosis:
    """That report with a trial of its finding's change."""
    rule = diagnosis.results[0].rule.name
    row = diagnoses.trial(rule, measured, rules=(rule,), promised=PROMISED, training=training)
    return with_measured(diagnosis, Trials(rows=(row,), rounds=3, runs=6))


BY_TRIED = after(NOTHING)
STATED = replace(as_finding(WORST.outcome), severity=Severity.CRITICAL)
OF_WHOLE_RUN = replace(LITTLE, share=0.02, high=0.03, of_run=True)


@cases(
    (LITTLE, {}, Severity.WARNING),
    (NOTHING, {}, Severity.NOTE),
    (SLOW, {}, Severity.NOTE),
    (HELPS, {}, Severity.CRITICAL),  # more than promised
    (replace(LITTLE, high=0.26), {}, Severity.CRITICAL),  # the interval reaches the promise
    (replace(NOTHING, high=0.26), {}, Severity.CRITICAL),
    (NOISY, {}, Severity.CRITICAL),  # the trial does not tell
    (replace(NOISY, share=-0.6, dropped=True), {}, Severity.NOTE),
    (LITTLE, {"severity": Severity.NOTE}, Severity.NOTE),  # a trial raises none
    # Of a run, the share follows that the severity followed:
    (LITTLE, {"run": OF_RUN}, Severity.WARNING),  # 8 % of what recurs
    (replace(LITTLE, share=0.05), {"run": OF_RUN}, Severity.NOTE),
    (OF_WHOLE_RUN, {"run": OF_RUN}, Severity.WARNING),
    (NOTHING, {"outcome": STATED}, Severity.CRITICAL),  # the rule states it
)
def test_the_severity_follows_what_was_measured(
    measured: Measured, fields: dict[str, Any], rated: Severity
) -> None:
    found = after(measured, replace(PROMISING, results=(replace(WORST, **fields), *OTHERS)))
    assert found.results[0].severity is rated


def test_a_change_that_trains_something_else_proves_nothing() -> None:
    broken = TrainingMatch(state=TrainingState.NOT_FINITE)
    assert after(NOTHING, training=broken).results[0].severity is Severity.CRITICAL


def test_findings_are_ordered_by_the_severity_that_was_measured() -> None:
    second = replace(full().results[1], saving=PROMISED, run=None, severity=Severity.WARNING)
    found = after(NOTHING, replace(PROMISING, results=(WORST, second)))
    assert [one.rule.name for one in found.results] == [second.rule.name, WORST.rule.name]


@each("md", "html", "llm", "sarif", "github", "json")
def test_each_format_has_the_severity_that_was_measured(name: str) -> None:
    """Trap: a finding was critical beside a trial that had found no difference."""
    marks = {"sarif": '"level": "error"', "github": "::error", "json": '"severity": "critical"'}
    # What a format says of the findings, without styles, scripts and data:
    before, said = (
        render(name, one).rpartition("<body")[2].partition("<script")[0] for one in (PROMISING, BY_TRIED)
    )
    critical = marks.get(name, "critical")
    assert [critical in before, critical in said] == [True, False]
    assert BY_TRIAL in said or name in marks


def test_the_terminal_and_the_exit_code_have_it_too() -> None:
    for report, is_critical in ((PROMISING, True), (BY_TRIED, False)):
        assert ("critical" in terminal.render(report, width=100, color=False)) is is_critical
        assert exit_code(report, FailOn.CRITICAL) == (FOUND if is_critical else 0)


def test_a_report_of_an_earlier_version_is_rated_by_its_trial_when_it_is_read() -> None:
    by_promise = replace(BY_TRIED.results[0], severity=Severity.CRITICAL)
    again = stored_report.read(stored_report.write(replace(BY_TRIED, results=(by_promise,)))).results[0]
    assert (again.severity, again.measured) == (Severity.NOTE, NOTHING)

"""The severity of a finding whose change was tried: it follows what was measured, where that is less."""

from dataclasses import replace
from typing import Any

import pytest

from tests.report import diagnoses
from tests.report.diagnoses import HELPS, NOISY, NOTHING, SLOW
from tests.rules.verdicts import as_finding
from tfdoctor.cli import FOUND
from tfdoctor.cli.gates import exit_code
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.savings import RunSaving, Saving
from tfdoctor.diagnosis.trials import Measured, TrainingMatch, TrainingState, Trials
from tfdoctor.report import terminal
from tfdoctor.report.findings import BY_TRIAL
from tfdoctor.report.formats import render
from tfdoctor.rulebook.config import FailOn
from tfdoctor.stored import report as stored
from tfdoctor.terms.verdict import Bound, Finding, Recurrence, Severity
from tfdoctor.trial.trial import with_measured

PROMISED = Saving(ms_per_step=13.0, share=0.25, bound=Bound.EXPECTED, how="By the step model.")
OF_RUN = RunSaving(
    ms=9.0, share=0.05, rated_share=0.20, recurs=Recurrence.PER_CALL, each_ms=1.0, times=9,
    bound=Bound.EXPECTED,
)  # fmt: skip
LITTLE = replace(HELPS, share=0.1, low=0.06, high=0.14)


def promising() -> Diagnosis:
    """A report whose only finding is critical by its promise, a quarter of the step."""
    diagnosis = diagnoses.full()
    found = replace(diagnosis.results[0], saving=PROMISED, run=None, severity=Severity.CRITICAL)
    others = [one for one in diagnosis.results if not isinstance(one.outcome, Finding)]
    return replace(diagnosis, results=(found, *others))


def tried(
    measured: Measured, diagnosis: Diagnosis | None = None, training: TrainingMatch | None = None
) -> Diagnosis:
    """That report with a trial of its finding's change."""
    diagnosis = diagnosis or promising()
    rule = diagnosis.results[0].rule.name
    row = diagnoses.trial(rule, measured, rules=(rule,), promised=PROMISED, training=training)
    return with_measured(diagnosis, Trials(rows=(row,), rounds=3, runs=6))


CRITICAL = promising().results[0]
STATED = replace(as_finding(CRITICAL.outcome), severity=Severity.CRITICAL)
OF_WHOLE_RUN = replace(LITTLE, share=0.02, high=0.03, of_run=True)


@pytest.mark.parametrize(
    ("measured", "fields", "rated"),
    [
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
    ],
)
def test_the_severity_follows_what_was_measured(
    measured: Measured, fields: dict[str, Any], rated: Severity
) -> None:
    diagnosis = promising()
    found = tried(measured, replace(diagnosis, results=(replace(CRITICAL, **fields), *diagnosis.results[1:])))
    assert found.results[0].severity is rated


def test_a_change_that_trains_something_else_proves_nothing() -> None:
    broken = TrainingMatch(state=TrainingState.NOT_FINITE)
    assert tried(NOTHING, training=broken).results[0].severity is Severity.CRITICAL


def test_findings_are_ordered_by_the_severity_that_was_measured() -> None:
    diagnosis = diagnoses.full()
    first, second = (replace(one, saving=PROMISED, run=None) for one in diagnosis.results[:2])
    pair = (replace(first, severity=Severity.CRITICAL), replace(second, severity=Severity.WARNING))
    found = tried(NOTHING, replace(diagnosis, results=pair))
    assert [one.rule.name for one in found.results] == [second.rule.name, first.rule.name]


@pytest.mark.parametrize("name", ["md", "html", "llm", "sarif", "github", "json"])
def test_each_format_has_the_severity_that_was_measured(name: str) -> None:
    """Trap: a finding was critical beside a trial that had found no difference."""
    marks = {"sarif": '"level": "error"', "github": "::error", "json": '"severity": "critical"'}
    critical = marks.get(name, "critical")
    assert critical in _results(name, promising())
    said = _results(name, tried(NOTHING))
    assert critical not in said
    assert BY_TRIAL in said or name in {"sarif", "github", "json"}


def _results(name: str, diagnosis: Diagnosis) -> str:
    """What a format says of the findings, without styles, scripts and data."""
    text = render(name, diagnosis)
    return text.partition("<body")[2].partition("<script")[0] if name == "html" else text


def test_the_terminal_and_the_exit_code_have_it_too() -> None:
    assert "critical" in terminal.render(promising(), width=100, color=False)
    assert "critical" not in terminal.render(tried(NOTHING), width=100, color=False)
    assert exit_code(promising(), FailOn.CRITICAL) == FOUND
    assert exit_code(tried(NOTHING), FailOn.CRITICAL) == 0


def test_a_report_of_an_earlier_version_is_rated_by_its_trial_when_it_is_read() -> None:
    by_promise = replace(tried(NOTHING).results[0], severity=Severity.CRITICAL)
    read = stored.read(stored.write(replace(tried(NOTHING), results=(by_promise,)))).results[0]
    assert (read.severity, read.measured) == (Severity.NOTE, NOTHING)

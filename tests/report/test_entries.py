"""One entry for each cause: symptoms with their causes, one edit once, doubts about the recording apart."""

from dataclasses import replace

import pytest

from tests.report import diagnoses
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import Takes
from tfdoctor.report import findings, terminal
from tfdoctor.report.formats import html, md
from tfdoctor.report.page import page
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Bound, Edit, Effect, Finding, Location, Remedy, Stage


def named(diagnosis: Diagnosis) -> list[tuple[str, list[str], list[str]]]:
    return [
        (
            entry.result.rule.name,
            [result.rule.name for result in entry.symptoms],
            [result.rule.name for result in entry.same],
        )
        for entry in diagnosis.entries
    ]


def test_a_symptom_is_told_with_its_cause_and_one_edit_is_one_entry() -> None:
    assert named(diagnoses.caused())[0] == ("sequential-map", ["input-bound"], ["hot-stage"])
    assert len(diagnoses.caused().entries) == len(diagnoses.full().entries)


def test_findings_without_relations_are_entries_of_their_own() -> None:
    names = [name for name, symptoms, same in named(diagnoses.full()) if not symptoms + same]
    assert names == ["input-bound", "between-steps", "float32-matmul", "idle-device"]


def test_a_symptom_whose_causes_explain_little_keeps_its_entry() -> None:
    """Trap: 41.5 ms of wait must not vanish behind a cause of 5 ms."""
    base = diagnoses.caused()
    (symptom, *causes) = base.results[:3]
    assert symptom.saving
    small = replace(symptom.saving, ms_per_step=5.0)
    weaker = tuple(replace(cause, saving=small) for cause in causes)
    names = named(replace(base, results=(symptom, *weaker, *base.results[3:])))
    assert names[:2] == [("input-bound", [], []), ("sequential-map", [], ["hot-stage"])]


def test_causes_whose_savings_are_unknown_explain_the_symptom() -> None:
    base = diagnoses.caused()
    symptom, *causes = base.results[:3]
    unknown = tuple(replace(cause, saving=None) for cause in causes)
    names = named(replace(base, results=(symptom, *unknown, *base.results[3:])))
    assert names[0] == ("sequential-map", ["input-bound"], ["hot-stage"])


def test_a_general_cause_has_not_the_saving_of_a_symptom_that_a_specific_one_explains() -> None:
    """A stage beside the slow one would stand first, with all of the wait as its saving."""
    base = diagnoses.caused()
    symptom, specific, general = base.results[:3]
    assert isinstance(general.outcome, Finding)
    general = replace(
        general,
        rule=replace(general.rule, general=True),
        saving=None,
        takes=Takes(12.0, 0.23),
        outcome=replace(general.outcome, remedies=(Remedy("Let it handle less"),)),
    )
    found = replace(base, results=(symptom, general, specific)).entries
    causes = {one.result.rule.name: [each.rule.name for each in one.symptoms] for one in found}
    assert causes == {"sequential-map": ["input-bound"], "hot-stage": []}
    assert {one.result.rule.name for one in found if one.priced.saving} == {"sequential-map"}


@pytest.mark.parametrize(("time", "told"), [(22.0, True), (21.0, False)])
def test_two_ceilings_of_one_stage_are_one_entry(time: float, *, told: bool) -> None:
    """A general rule names the stage that steps wait for, and states its time; its saving is that of the wait."""
    base = diagnoses.caused()
    symptom, *_, general = base.results[:3]
    rule = replace(general.rule, general=True)
    general = replace(general, rule=rule, saving=None, takes=Takes(time, time / 52.0))
    effect = Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST)
    assert isinstance(symptom.outcome, Finding)
    symptom = replace(symptom, outcome=replace(symptom.outcome, effects=(effect,)))
    both = replace(base, results=(symptom, general))
    assert len(both.entries) == (1 if told else 2)
    first = page(both).fixes[0]
    assert first.result.rule.name == ("hot-stage" if told else "input-bound")
    assert findings.saving(first, both) == ("41.5 ms (80 %)", "")
    assert findings.severity(first) == "critical"


def test_edits_that_differ_are_entries_of_their_own() -> None:
    base = diagnoses.caused()
    at = Location("train.py", 41)
    edited = (
        diagnoses.edited(base.results[1], Edit(at, "x", "y")),
        diagnoses.edited(base.results[2], Edit(at, "x", "z")),
    )
    names = named(replace(base, results=(base.results[0], *edited)))
    assert names == [("sequential-map", ["input-bound"], []), ("hot-stage", ["input-bound"], [])]


def test_the_ceiling_is_no_sentence_where_the_symptom_is_told_with_its_cause() -> None:
    assert not any("upper bound" in sentence for sentence in page(diagnoses.caused()).order)


def test_every_format_names_the_rules_of_an_entry() -> None:
    diagnosis = diagnoses.caused()
    words = "sequential-map, a cause of input-bound, also hot-stage"
    assert words in " ".join(terminal.render(diagnosis, width=100, color=False).split())
    assert "`sequential-map`, a cause of input-bound, also hot-stage" in md.render(diagnosis)
    text = html.render_without_plotly(diagnosis)
    finding = text.split('<article id="finding-1"')[1].split("</article>")[0]
    assert "The same change is advised by <code>hot-stage</code>" in finding
    assert "Evidence of input-bound" in finding
    assert 'id="finding-5"' not in text


def test_findings_about_the_same_calls_of_the_step_and_of_the_run_are_one_entry() -> None:
    base = diagnoses.full()
    first, second, third, fourth = (
        _about(result, *about)
        for result, about in zip(
            base.results,
            ((RunCall.PREDICT, 30), (RunCall.PREDICT, 30), (RunCall.PREDICT, 31), (RunCall.SAVE, 30)),
            strict=False,
        )
    )
    found = named(replace(base, results=(first, second, third, fourth), order=None))
    name = second.rule.name
    assert [same for _, _, same in found] == [[name], [], []]


def _about(result: Result, call: RunCall, line: int) -> Result:
    assert isinstance(result.outcome, Finding)
    remedy = replace(result.outcome.remedies[0], at=Location("train.py", line))
    outcome = replace(result.outcome, about=call, remedies=(remedy,))
    return replace(result, outcome=outcome)

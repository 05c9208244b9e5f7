"""The program without its parts, in every format: experiments, never savings."""

import json
from dataclasses import replace

import pytest

from tests.report.diagnoses import AT_MOST, HELPS, HURTS, NOISY, NOTHING, full, tried
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.trials import Measured, PartTrial, Trials
from tfdoctor.report import terminal, trials
from tfdoctor.report.formats import html, md
from tfdoctor.report.formats import json as json_format
from tfdoctor.report.trial_words import less
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.verdict import Location

CHECKPOINT = PartTrial(
    part=Part.CALLBACK,
    name="ModelCheckpoint",
    at=Location("train.py", 9),
    share=0.4,
    measured=replace(HELPS, share=0.47, low=0.44, high=0.5, of_run=True),
    as_is_ms=20_000.0,
    without_ms=10_600.0,
    runs=3,
)
INPUT = PartTrial(
    part=Part.INPUT,
    name="input",
    measured=replace(HELPS, share=0.38, low=0.33, high=0.42),
    rule="input-bound",
    promised=AT_MOST,
)
BROKEN = PartTrial(part=Part.SUMMARIES, name="tf.summary", missing="the program fails without it (KeyError: 'a')")


def without(*parts: PartTrial, diagnosis: Diagnosis | None = None) -> Diagnosis:
    diagnosis = diagnosis or full()
    known = diagnosis.trials or Trials(rows=(), runs=9, rounds=3, minutes=4.0)
    return replace(diagnosis, trials=replace(known, parts=parts))


def cells(part: PartTrial) -> tuple[str, ...]:
    return trials.parts_grid(Trials(rows=(), parts=(part,))).rows[0]


def test_a_part_is_told_with_its_line_and_its_interval() -> None:
    assert cells(CHECKPOINT) == (
        "Without ModelCheckpoint",
        "train.py:9",
        "40 % of what recurs",
        "47 % less of the whole run (44 to 50 %)",
        "20.0 s, then 10.6 s",
    )


def test_the_input_stands_beside_the_bound_of_its_rule() -> None:
    what, _, _, measured, _ = cells(INPUT)
    assert what == "Input always ready"
    assert measured.startswith("38 % less of the step (33 to 42 %); input-bound at most ")


def test_a_row_without_a_figure_says_why() -> None:
    assert cells(BROKEN)[3] == "no figure, because the program fails without it (KeyError: 'a')"


@pytest.mark.parametrize(
    ("measured", "told"), [(NOTHING, "no measurable difference"), (HURTS, "longer: "), (NOISY, "unknown, because ")]
)
def test_other_results_are_no_less(measured: Measured, told: str) -> None:
    assert less(measured).startswith(told)


@pytest.mark.parametrize("diagnosis", [full(), tried()])
def test_all_formats_have_the_experiments_and_call_none_a_saving(diagnosis: Diagnosis) -> None:
    shown = without(CHECKPOINT, INPUT, BROKEN, diagnosis=diagnosis)
    page, text = html.render_without_plotly(shown), terminal.render(shown, width=200)
    for rendered in (page, text, md.render(shown)):
        assert trials.PARTS_TITLE in rendered
        assert "no figure is a saving" in " ".join(rendered.split())
    written = json.loads(json_format.render(shown))["trials"]["without"]
    assert [row["part"] for row in written] == ["callback", "input", "summaries"]
    assert written[0]["measured"]["share"] == pytest.approx(0.47)


def test_a_trial_of_parts_alone_names_the_largest() -> None:
    assert trials.verdict(without(INPUT, CHECKPOINT)) == (
        "Measured: Without ModelCheckpoint, 47 % less of the whole run (44 to 50 %).",
    )


def test_a_trial_of_parts_alone_without_a_figure_says_so() -> None:
    assert trials.verdict(without(BROKEN)) == ("No part was shown to take time.",)


def test_parts_change_nothing_that_is_said_of_changes() -> None:
    assert trials.verdict(tried()) == trials.verdict(without(INPUT, diagnosis=tried()))

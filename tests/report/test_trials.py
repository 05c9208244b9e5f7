"""What was measured, in every format: beside what was promised, with whether it trains the same."""

import json
from dataclasses import replace

import pytest

from tests.report.diagnoses import HELPS, HURTS, NOISY, NOTHING, full, tried
from tfdoctor.diagnosis import Measured
from tfdoctor.report import trials
from tfdoctor.report.formats import html, md
from tfdoctor.report.formats import json as json_format


def test_the_page_shows_intervals_and_hides_no_markup() -> None:
    page = html.render_without_plotly(tried())
    assert "Measured by running the changes" in page
    assert page.count('class="range"') == 3
    assert page.count('class="point"') == 6
    assert "<b>no library</b>" not in page
    assert "Losses of the first steps" in page


def test_a_report_without_trials_has_no_section() -> None:
    assert "Measured by running" not in html.render_without_plotly(full())
    assert "Measured by running" not in md.render(full())


def test_markdown_has_the_table() -> None:
    text = md.render(tried())
    assert "### Measured by running the changes" in text
    assert "saves 31 % (28 to 34 %)" in text
    assert "NO: other weights after 20 steps" in text


def test_the_contract_has_trials_and_the_findings_figure() -> None:
    contract = json.loads(json_format.render(tried()))
    assert contract["results"][0]["measured"]["share"] == 0.31
    assert [row["name"] for row in contract["trials"]["variants"]][1:] == [
        "TF_ENABLE_ONEDNN_OPTS=0",
        "mine.diff",
        "tcmalloc",
    ]
    assert contract["trials"]["variants"][3]["missing"] == "OSError: <b>no library</b>"
    assert contract["trials"]["writes_thrown_away"] is False


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (HELPS, "saves 31 % (28 to 34 %)"),
        (NOTHING, "no difference that this could show (-2 to 3 %)"),
        (HURTS, "costs 26 % (24 to 29 %)"),
        (NOISY, "unknown, because the machine was too noisy to tell"),
        (None, ""),
    ],
)
def test_a_measured_saving_in_words(measured: Measured | None, words: str) -> None:
    assert trials.saved(measured) == words


def test_the_headline_says_what_was_proved() -> None:
    diagnosis = tried()
    assert diagnosis.trials is not None
    assert trials.verdict(diagnosis.trials) == (
        "Measured: 1.45\N{MULTIPLICATION SIGN} as fast with one change of 4 tried, which saves 31 % (28 to 34 %) "
        "of the step."
    )
    nothing = replace(diagnosis.trials, rows=diagnosis.trials.rows[1:3])
    assert trials.verdict(nothing) == "Measured: none of two changes was shown to save time."

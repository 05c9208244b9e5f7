"""Each rendering of each kind of diagnosis, byte for byte."""

from collections.abc import Callable

import pytest

from tests.report import diagnoses
from tfdoctor.report import terminal
from tfdoctor.report.formats import html, json, llm, md
from tfdoctor.stored.report import finished

Compare = Callable[[str, str], None]
CUT_FOR_A_MODEL = {"hostile", "hostile-run"}
"""Diagnoses that are too long for it."""

KINDS = [
    "full",
    "healthy",
    "no-steps",
    "errored",
    "single-step",
    "several-hosts",
    "configured",
    "unexplained",
    "tried",
    "caused",
    "gated",
    "run",
    "run-predicts",
]


@pytest.mark.parametrize("kind", KINDS)
def test_json(kind: str, golden: Compare) -> None:
    golden(f"{kind}.json", json.render(finished(diagnoses.ALL[kind]())))


@pytest.mark.parametrize("kind", [*KINDS, "hostile", "hostile-run"])
def test_markdown(kind: str, golden: Compare) -> None:
    golden(f"{kind}.md", md.render(diagnoses.ALL[kind]()))


@pytest.mark.parametrize("kind", ["full", "tried", "gated", "run", "hostile"])
def test_text_for_a_language_model(kind: str, golden: Compare) -> None:
    golden(f"{kind}.llm.txt", llm.render(diagnoses.ALL[kind]()))


@pytest.mark.parametrize("kind", diagnoses.ALL)
def test_text_for_a_language_model_is_short(kind: str) -> None:
    text = llm.render(diagnoses.ALL[kind]())
    assert len(text.encode()) <= llm.LIMIT
    assert text.endswith(llm.CUT) is (kind in CUT_FOR_A_MODEL)


@pytest.mark.parametrize("kind", [*KINDS, "hostile", "hostile-run", "run-window"])
def test_terminal(kind: str, golden: Compare) -> None:
    golden(f"{kind}.txt", terminal.render(diagnoses.ALL[kind](), width=80, color=False))


@pytest.mark.parametrize(
    "kind", ["full", "no-steps", "several-hosts", "unexplained", "tried", "caused", "gated", "run"]
)
def test_html_without_the_code_of_plotly(kind: str, golden: Compare) -> None:
    golden(f"{kind}.html", html.render_without_plotly(finished(diagnoses.ALL[kind]())))

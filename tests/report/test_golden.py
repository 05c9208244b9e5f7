"""Each rendering of each kind of diagnosis, byte for byte."""

from collections.abc import Callable

import pytest

from tests.report import diagnoses
from tfdoctor.report import html, json_, markdown, terminal

Compare = Callable[[str, str], None]
KINDS = ["full", "healthy", "no-steps", "errored", "single-step", "several-hosts", "configured"]


@pytest.mark.parametrize("kind", KINDS)
def test_json(kind: str, golden: Compare) -> None:
    golden(f"{kind}.json", json_.render(diagnoses.ALL[kind]()))


@pytest.mark.parametrize("kind", [*KINDS, "hostile"])
def test_markdown(kind: str, golden: Compare) -> None:
    golden(f"{kind}.md", markdown.render(diagnoses.ALL[kind]()))


@pytest.mark.parametrize("kind", [*KINDS, "hostile"])
def test_terminal(kind: str, golden: Compare) -> None:
    golden(f"{kind}.txt", terminal.render(diagnoses.ALL[kind](), width=80, color=False))


@pytest.mark.parametrize("kind", ["full", "no-steps", "several-hosts"])
def test_html_without_the_code_of_plotly(kind: str, golden: Compare) -> None:
    golden(f"{kind}.html", html.render_without_plotly(diagnoses.ALL[kind]()))

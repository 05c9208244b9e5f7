"""The package: its formats, and what importing it costs."""

import subprocess
import sys

import pytest

from tests.report import diagnoses
from tfdoctor.report import RENDERERS, Format


def test_every_format_has_a_renderer_and_a_suffix() -> None:
    assert set(RENDERERS) == set(Format)
    assert [one.suffix for one in Format] == [".html", ".json", ".md"]


@pytest.mark.parametrize("kind", diagnoses.ALL)
@pytest.mark.parametrize("one", Format)
def test_everything_is_rendered_and_can_be_written(one: Format, kind: str) -> None:
    text = RENDERERS[one](diagnoses.ALL[kind]())
    assert text.endswith("\n")
    assert text.encode("utf-8")


def test_importing_the_package_loads_no_library() -> None:
    code = "import sys, tfdoctor.report; print({'plotly', 'jinja2', 'rich'} & set(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "src"},
    )
    assert ran.stdout.strip() == "set()"

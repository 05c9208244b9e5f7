"""The package: its formats, and what importing it costs."""

import subprocess
import sys

import pytest

from tests.report import diagnoses
from tfdoctor.report.formats import FORMATS, render


def test_a_module_is_a_format() -> None:
    assert FORMATS == ("github", "gitlab", "html", "json", "md", "sarif")


@pytest.mark.parametrize("kind", diagnoses.ALL)
@pytest.mark.parametrize("file_format", FORMATS)
def test_everything_is_rendered_and_can_be_written(file_format: str, kind: str) -> None:
    text = render(file_format, diagnoses.ALL[kind]())
    assert text.endswith("\n")
    assert text.encode("utf-8")


def test_importing_the_package_loads_no_library() -> None:
    code = "import sys, tfdoctor.report.formats; print({'plotly', 'jinja2', 'rich'} & set(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "src"},
    )
    assert ran.stdout.strip() == "set()"

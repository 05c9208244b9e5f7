"""The package: its formats, and what importing it costs."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report import diagnoses
from tests.report.diagnoses import told
from tfdoctor.report.files import write
from tfdoctor.report.formats import FORMATS, render


def test_a_module_is_a_format() -> None:
    assert FORMATS == ("github", "gitlab", "html", "json", "llm", "md", "sarif")


@pytest.mark.parametrize("kind", diagnoses.ALL)
@pytest.mark.parametrize("file_format", FORMATS)
def test_everything_is_rendered_and_can_be_written(file_format: str, kind: str) -> None:
    text = render(file_format, diagnoses.ALL[kind]())
    assert text.endswith("\n")
    assert text.encode("utf-8")


def test_importing_the_package_loads_no_library() -> None:
    code = "import sys, tfdoctor.report.formats; print({'plotly', 'jinja2', 'rich'} & set(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "src"}
    )
    assert ran.stdout.strip() == "set()"


def test_slow_steps_that_take_most_of_the_time_come_first() -> None:
    first, second, *_ = told(diagnoses.slow_steps())
    assert first == "4.65 s of the 4.78 s of 91 timed steps are in 16 slow steps."
    assert second == told(diagnoses.full())[0].replace("Each step", "A typical step")


def test_a_typical_step_beside_slow_ones_is_the_untraced_one_too() -> None:
    slow = diagnoses.slow_steps()
    assert slow.steps.shown_ms
    outside = replace(slow.conditions, untraced_ms=slow.steps.shown_ms / 1.3)
    _, second, *_ = told(replace(slow, conditions=outside))
    assert second.startswith("A typical step takes 40.0 ms (52.0 ms while it was traced), ")


@pytest.mark.parametrize(("times", "said"), [(0.9, True), (1.0, False), (1.2, False), (1.5, True)])
def test_untraced_steps_that_differ_from_traced_ones_are_said(times: float, *, said: bool) -> None:
    """Other programs may delay the steps outside of the window, as the profiler those in it."""
    base = diagnoses.full()
    assert base.steps.shown_ms
    outside = replace(base.conditions, untraced_ms=times * base.steps.shown_ms)
    first, *_ = told(replace(base, conditions=outside))
    assert ("(52.0 ms while it was traced)" in first) is said


def test_few_steps_promise_nothing_and_say_why() -> None:
    text = " ".join(told(diagnoses.single_step()))
    assert "because fewer than five steps" in text
    assert "would" not in text


def test_a_format_that_fails_does_not_lose_the_others(tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        write(diagnoses.full(), tmp_path, ["no_such_format", "md"])
    assert "no_such_format" in caught.value.__notes__[0]
    assert (tmp_path / "report.md").is_file()

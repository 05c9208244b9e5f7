"""slow-start: other imports and repeated loads are found, TensorFlow's import and one model are not."""

from typing import Any

import pytest

from tests.rules.applied import applied
from tests.rules.cases.slow_start import IMPORTED as TENSORFLOW
from tests.rules.cases.slow_start import example
from tests.rules.run_facts import line, made
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.rules import slow_start
from tfdoctor.rules.slow_start.start_load import StartLoad
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.verdict import Finding, Healthy, Location, NotApplicable, Severity, Verdict


def imported(number: int, ms: float, module: str) -> RunLine:
    return line(Phase.IMPORTS, number, ms, module, repeats=False)


def judged(*lines: RunLine, **more: Any) -> Verdict:
    return example(*more.pop("calls", ()), lines=lines, **more)


def test_the_import_of_tensorflow_is_necessary_however_short_the_run_is() -> None:
    assert "6.00 s" in as_healthy(judged(TENSORFLOW, total_ms=8_000.0)).summary


def test_a_very_slow_import_of_tensorflow_is_a_note() -> None:
    assert isinstance(judged(imported(2, 14_999.0, "tensorflow")), Healthy)
    assert as_finding(judged(imported(2, 15_000.0, "keras"))).severity is Severity.NOTE


def test_another_module_is_a_note_at_its_line() -> None:
    verdict = as_finding(judged(TENSORFLOW, imported(3, 4_000.0, "transformers")))
    assert verdict.severity is Severity.NOTE
    assert verdict.remedies[0].at == Location("train.py", 3)
    assert "import transformers" in verdict.remedies[0].code
    assert verdict.run_effects[0].of.value == pytest.approx(4_000.0)


BUSY = StartLoad(usable=2.0, run=0.1, others=1.9)


def test_imports_beside_other_programs_are_not_judged() -> None:
    slow = imported(3, 40_000.0, "transformers")
    assert isinstance(judged(TENSORFLOW, slow, load=StartLoad(4.0, 1.0, 1.9)), Finding)  # one is free
    assert isinstance(judged(TENSORFLOW, slow, load=StartLoad(2.0, 1.0, 0.5)), Finding)
    verdict = judged(TENSORFLOW, slow, load=BUSY)
    assert isinstance(verdict, NotApplicable)
    assert "other programs used 1.9 of 2 cores" in verdict.reason


def test_nothing_slow_is_healthy_whatever_other_programs_do() -> None:
    assert isinstance(judged(TENSORFLOW, load=BUSY), Healthy)


def test_loads_in_a_loop_count_beside_other_programs() -> None:
    loads = made(RunCall.BUILD, 14, 40, 800.0, name="load_model", looped=True)
    verdict = as_finding(judged(imported(3, 40_000.0, "transformers"), calls=(loads,), load=BUSY))
    assert {effect.subject for effect in verdict.run_effects} == {"train.py:14"}


@pytest.mark.parametrize(
    "other",
    [
        imported(3, 1_999.0, "pandas"),  # short
        imported(3, 2_500.0, ""),  # a module that is not known
        imported(3, 2_500.0, "importlib._bootstrap._find_and_load"),
    ],
)
def test_other_imports_are_healthy(other: RunLine) -> None:
    assert isinstance(judged(TENSORFLOW, other), Healthy)


def test_a_module_that_the_script_uses_is_necessary() -> None:
    pandas = imported(3, 4_000.0, "pandas")
    used = line(Phase.PREPARING, 9, 300.0, "pandas.core.frame.DataFrame.merge", samples=1)
    assert isinstance(judged(TENSORFLOW, pandas), Finding)
    assert isinstance(judged(TENSORFLOW, pandas, used), Healthy)


def test_a_module_that_imports_tensorflow_may_take_its_time() -> None:
    assert isinstance(judged(imported(1, 9_000.0, "transformers")), Healthy)


@pytest.mark.parametrize(
    ("count", "looped", "name", "kind"),
    [
        (40, True, "load_model", Finding),
        (10, True, "Checkpoint.restore", Finding),
        (9, True, "load_model", Healthy),  # an ensemble
        (40, False, "load_model", Healthy),
        (40, True, "clear_session", Healthy),
    ],
)
def test_a_model_that_a_loop_loads_again(count: int, name: str, kind: type, *, looped: bool) -> None:
    call = made(RunCall.BUILD, 14, count, 800.0, name=name, looped=looped)
    assert isinstance(judged(TENSORFLOW, calls=(call,)), kind)


def test_weights_one_by_one_are_found_and_layers_are_not() -> None:
    setting = "keras.src.layers.layer.Layer.set_weights"
    verdict = as_finding(judged(TENSORFLOW, line(Phase.BUILDING, 30, 8_000.0, setting)))
    assert "one by one at train.py:30" in verdict.summary
    layers = line(Phase.BUILDING, 30, 8_000.0, "keras.src.layers.core.dense.Dense.__init__")
    assert isinstance(judged(TENSORFLOW, layers), Healthy)


def test_python_in_a_loop_while_building_is_found() -> None:
    assert isinstance(judged(line(Phase.BUILDING, 30, 8_000.0)), Finding)
    assert isinstance(judged(line(Phase.BUILDING, 30, 8_000.0, repeats=False)), Healthy)


def test_imports_beside_each_other_are_told_apart() -> None:
    small = [imported(number, 1_500.0, f"module{number}") for number in range(3, 8)]
    assert isinstance(judged(TENSORFLOW, *small), Healthy)


def test_a_part_of_the_run_is_not_judged() -> None:
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    assert applied(slow_start, part, RunCalls(())) == NotApplicable(reason="only a window was traced")

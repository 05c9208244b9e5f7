"""A defect in one fact neither takes a report down nor disappears: it is shown once, in the trust section."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.fact_index import measured
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.facts.operations.matmuls import OneDnn
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.tpu.operations import Padding
from tfdoctor.recording import Recording
from tfdoctor.report.formats import html, json, md
from tfdoctor.rules import all_rules

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def report(sample: str) -> Diagnosis:
    recording = Recording.open(SAMPLES / sample)
    return diagnose(recording, all_rules(), sample, ask_xprof=False)


def break_(monkeypatch: pytest.MonkeyPatch, fact: type) -> None:
    original = fact.measure  # type: ignore[attr-defined]  # every class given here has one

    def measure(**given: object) -> object:
        del given
        return 1 / 0

    measure.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]  # inspect reads it
    monkeypatch.setattr(fact, "measure", measure)


@pytest.mark.parametrize(
    ("fact", "sample"), [(Padding, "synthetic-tpu-v5e-padded"), (OneDnn, "cpu-float32-convnet")]
)
def test_a_defect_in_a_fact_that_no_rule_uses_is_shown_once(
    monkeypatch: pytest.MonkeyPatch, fact: type, sample: str
) -> None:
    healthy = report(sample)
    break_(monkeypatch, fact)
    broken = report(sample)
    reason = f"tfdoctor failed to measure {fact.__name__} (ZeroDivisionError"
    assert sum(reason in said for said in broken.trust.reasons) == 1
    assert [type(r.outcome) for r in broken.results] == [type(r.outcome) for r in healthy.results]
    assert broken.trust.level == healthy.trust.level
    assert fact.__name__ in html.render(broken)


SAMPLE = "synthetic-gpu-a100-fp32"


@pytest.fixture(scope="module")
def asked() -> set[type]:
    """The facts that a report on the sample measures: a defect in another one changes nothing."""
    found: set[type] = set()

    def noted(fact: type, original: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(original)
        def measure(**given: object) -> object:
            found.add(fact)
            return original(**given)

        return measure

    with pytest.MonkeyPatch.context() as patch:
        for fact in measured():
            patch.setattr(fact, "measure", noted(fact, fact.measure))  # type: ignore[attr-defined]  # each has one
        report(SAMPLE)
    return found


@pytest.mark.parametrize("fact", measured(), ids=lambda fact: fact.__name__)
def test_no_defect_of_a_fact_takes_the_report_down(
    monkeypatch: pytest.MonkeyPatch, asked: set[type], fact: type
) -> None:
    if fact not in asked:
        return
    break_(monkeypatch, fact)
    broken = report(SAMPLE)
    assert md.render(broken)
    assert json.render(broken)
    shown = [said for said in broken.trust.reasons if "ZeroDivisionError" in said]
    assert len(shown) <= 1


def test_the_facts_are_found(asked: set[type]) -> None:
    assert {Device, OneDnn, Padding} <= set(measured())
    assert len(asked) > 60

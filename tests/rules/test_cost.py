"""cost: what steps and savings cost at a price, and nothing without one."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.builders import chart, recording, trace
from tfdoctor import cli
from tfdoctor.diagnose import diagnose
from tfdoctor.facts.breakdown import Breakdown
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.matrix_unit import MatrixUnit
from tfdoctor.facts.price import Epoch, Price
from tfdoctor.humanize import dollars, quantity
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules
from tfdoctor.rules.cost import LIMITS, check
from tfdoctor.units import Quantity, Unit
from tfdoctor.verdict import Finding, Healthy, Measure, NotApplicable, Severity, Verdict

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "cpu-input-bound"
PRICE = Price(3.6)
"""A dollar for a million milliseconds."""


def told(verdict: Verdict) -> dict[str, float]:
    assert isinstance(verdict, Finding | Healthy)
    return {m.label: m.value.value for m in verdict.evidence if isinstance(m, Measure)}


@pytest.mark.parametrize(("idle", "kind"), [(51.0, Finding), (100 * LIMITS.idle, Healthy)])
def test_from_half_of_the_step_on_most_of_the_money_goes_elsewhere(idle: float, kind: type) -> None:
    verdict = check(PRICE, Breakdown.of(device=100 - idle, input=idle), None, None)
    assert isinstance(verdict, kind)


def test_a_note_that_promises_nothing() -> None:
    verdict = check(PRICE, Breakdown.of(device=10.0, host=90.0), None, None)
    assert isinstance(verdict, Finding)
    assert (verdict.severity, verdict.effects) == (Severity.NOTE, ())


def test_steps_epochs_and_flops_at_a_price() -> None:
    matrix = MatrixUnit(unit="AMX", busy_ms=90.0, matrix_ms=50.0, matrix_rate=2e12)
    found = told(check(PRICE, Breakdown.of(device=90.0, input=10.0), Epoch(500), matrix))
    assert found["a step"] == pytest.approx(1e-4)
    assert found["an epoch of 500 steps"] == pytest.approx(0.05)
    assert found["matmuls and convolutions that a dollar buys"] == pytest.approx(1e12 * 3600 / 3.6)


def test_what_nobody_knows_is_not_called_idle() -> None:
    assert isinstance(
        check(PRICE, Breakdown.of(unknown=60.0, device=40.0), None, None), NotApplicable
    )
    known = told(check(PRICE, Breakdown.of(unknown=40.0, device=60.0), None, None))
    assert known["of it without computing"] == pytest.approx(0.0)


def test_a_price_is_never_guessed() -> None:
    with pytest.raises(Unavailable, match="--usd-per-hour"):
        chart(trace()).fact(Price)


@pytest.mark.parametrize(("cardinality", "steps"), [(60, 60), (-1, None), (-2, None), (None, None)])
def test_an_epoch_is_as_long_as_tf_data_says(cardinality: int | None, steps: int | None) -> None:
    record = {"feeds": 3, "datasets": [{"id": 3, "cardinality": cardinality}]}
    of = chart(trace(), recording(record))
    if steps is None:
        with pytest.raises(Unavailable):
            of.fact(Epoch)
    else:
        assert of.fact(Epoch).steps == steps


def outcome(price: Price | None) -> object:
    found = diagnose(Recording.open(SAMPLE), all_rules(), "x", ask_xprof=False, price=price)
    return next(result.outcome for result in found.results if result.rule.name == "cost")


def test_a_report_says_what_its_savings_are_worth() -> None:
    found = outcome(PRICE)
    assert isinstance(found, Finding)
    last = found.evidence[-1]
    assert isinstance(last, Measure)
    assert "when all findings are followed" in last.label
    assert last.value.unit is Unit.US_DOLLARS
    assert 0 < last.value.value < 1000 * told(found)["a step"]


def test_without_a_price_the_rule_says_what_is_missing() -> None:
    found = outcome(None)
    assert isinstance(found, NotApplicable)
    assert "--usd-per-hour" in found.reason


@pytest.mark.parametrize(
    ("value", "text"),
    [(1204.5, "$1,204.50"), (0.0, "$0.00"), (0.0417, "$0.0417"), (6.94e-6, "$0.00000694"),
     (-2.0, "\N{MINUS SIGN}$2.00"), (None, "unknown")],
)  # fmt: skip
def test_money_has_three_digits(value: float | None, text: str) -> None:
    assert dollars(value) == text


def test_every_unit_is_written() -> None:
    assert quantity(Quantity(2e15, Unit.FLOP_PER_DOLLAR)) == "2 PFLOP/$"


def test_the_option_reaches_the_report(tmp_path: Path) -> None:
    options = ["--usd-per-hour", "2.5", "--format", "json", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli.app, ["report", str(SAMPLE), *options])
    assert done.exit_code == 0
    results = json.loads((tmp_path / "report.json").read_text("utf-8"))["results"]
    (mine,) = [result for result in results if result["rule"] == "cost"]
    assert mine["outcome"] == "finding"
    assert "A thousand steps cost $" in mine["summary"]


@pytest.mark.parametrize("price", ["0", "-1", "free"])
def test_a_price_of_nothing_is_a_usage_error(price: str) -> None:
    done = CliRunner().invoke(cli.app, ["report", str(SAMPLE), "--usd-per-hour", price])
    assert done.exit_code == 2

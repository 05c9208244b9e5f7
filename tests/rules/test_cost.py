"""cost: the cost of steps and savings at a given price, and nothing without one."""

from typer.testing import CliRunner

from tests.report.diagnoses import told
from tests.rules.kit import *
from tfdoctor import cli
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.rules.scale.cost import check
from tfdoctor.terms.humanize import dollars, quantity

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "cpu-input-bound"
PRICE = Price(3.6)
"""A dollar for a million milliseconds."""


def example(
    epoch: Epoch | None = Epoch(1000), matrix: MatrixUnit | None = None, *, usd_per_hour: float = 3.0,
    mean_ms: float = 100.0, **parts: float,
) -> Verdict:  # fmt: skip
    """Steps of 100 ms at 3 dollars per hour, of which the device computes for 30 ms."""
    breakdown = Breakdown.of(**(parts or {"device": 30.0, "input": 70.0}))
    return check(Price(usd_per_hour), breakdown, epoch, matrix, even_steps(20, mean_ms))


def epoch(cardinality: int | None) -> object:
    record = {"feeds": 3, "datasets": [{"id": 3, "class": "_BatchDataset", "cardinality": cardinality}]}
    return lambda: chart(trace(), recording(record)).fact(Epoch)


def outcome(price: Price | None) -> object:
    diagnosis = diagnose(Recording.open(SAMPLE), all_rules(), "x", ask_xprof=False, price=price)
    return next(result.outcome for result in diagnosis.results if result.rule.name == "cost")


sick = example
healthy = described("The same price with 90 ms of compute.", example, None, device=90.0, input=10.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a note that promises nothing, of an idle share above half"] = example(device=49.0, input=51.0)
    told["an idle share of half"] = example(device=50.0, input=50.0)
    told["four steps in twenty compiled, a steady one took a sixtieth"] = example(mean_ms=125.0, device=100.0)
    told[...] = example(mean_ms=126.0, device=100.0)
    told["unknown time is not called idle"] = example(unknown=60.0, device=40.0), example(unknown=40.0, device=60.0)
    matrix = MatrixUnit(unit="AMX", busy_ms=90.0, matrix_ms=50.0, matrix_rate=2e12)
    told["steps and FLOPs at a price"] = example(Epoch(500), matrix, usd_per_hour=3.6, device=90.0, input=10.0)
    told["a price is never guessed"] = lambda: chart(trace()).fact(Price)
    told["an epoch is as long as tf.data says"] = [epoch(cardinality) for cardinality in (60, -1, -2, None)]
    told["money has three digits"] = [dollars(usd) for usd in (1204.5, 0.0, 0.0417, 6.94e-6, -2.0, None)]
    told["FLOP per dollar"] = quantity(Quantity(2e15, Unit.FLOP_PER_DOLLAR))


def test_a_report_says_what_its_savings_are_worth_or_what_is_missing() -> None:
    assert "--usd-per-hour" in as_not_applicable(outcome(None)).reason
    measures = [one for one in as_finding(outcome(PRICE)).evidence if isinstance(one, Measure)]
    steps = next(one.value.value for one in measures if one.label == "cost per step")
    assert measures[-1].value.unit is Unit.US_DOLLARS
    assert 0 < measures[-1].value.value < 1000 * steps


@each("0", "-1", "free", "nan", "inf", "-inf", "1e400", "1e12")
def test_a_price_that_is_no_amount_is_a_usage_error(price: str) -> None:
    done = CliRunner().invoke(cli.app, ["report", str(SAMPLE), f"--usd-per-hour={price}"])
    assert done.exit_code == 2
    assert "wrote" not in done.output


def test_the_sentence_says_what_a_price_is(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfdoctor", "report", str(SAMPLE), "--usd-per-hour=nan"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "nan" in done.stderr
    assert "US dollars" in done.stderr


@each("0", "1", ids=["a finding", "healthy"])
def test_the_money_is_one_line_and_no_change(idle: str, tmp_path: Path) -> None:
    (tmp_path / "ci.toml").write_text(f"[limits.cost]\nidle = {idle}")
    options = ["--usd-per-hour", "2.5", "--format", "html,md,json", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli.app, ["report", str(SAMPLE), *options, "--config", str(tmp_path / "ci.toml")])
    assert done.exit_code == 0
    results = json.loads((tmp_path / "report.json").read_text("utf-8"))["results"]
    (mine,) = [result for result in results if result["rule"] == "cost"]
    assert mine["outcome"] == ("finding" if idle == "0" else "healthy")
    assert "A thousand steps cost $" in mine["summary"]
    output = " ".join(done.output.split())
    assert output.count("A thousand steps cost $") == 1
    head, _, details = (tmp_path / "report.md").read_text("utf-8").partition("<details>")
    assert ("cheaper machine" in details) is (idle == "0")
    page = (tmp_path / "report.html").read_text("utf-8")
    for summary in (output, head, page[: page.index('id="findings"')]):
        assert "A thousand steps cost" in summary
        assert "cheaper machine" not in summary


def test_a_price_alone_is_no_fault() -> None:
    rules = [rule for rule in all_rules() if rule.name == "cost"]
    diagnosis = diagnose(Recording.open(SAMPLE), rules, "x", ask_xprof=False, price=PRICE)
    assert isinstance(diagnosis.results[0].outcome, Finding)
    assert "One problem found" not in " ".join(told(diagnosis))

"""What runs waste together, and how they are ranked."""

from dataclasses import replace

import pytest

from tests.cases import cases
from tests.fleet.runs import failed, finding, reported, run
from tfdoctor.diagnosis.fleet_report import FleetRun
from tfdoctor.fleet.totals import device_prices
from tfdoctor.report.fleet import job_cells
from tfdoctor.terms.errors import ConfigError

UNTIMED = run("/untimed", hours=None, devices=8)
WHOLE = run(
    "/whole", hours=0.2, saving_share=0.5, run_hours=3.0, run_saving_share=0.9, run_saving_bound="at-most",
    findings=(replace(finding("slow-prediction", None), run_share=0.85),),
)  # fmt: skip


@cases(
    ([run("/a", hours=1.0), run("/b", hours=3.0), run("/c", hours=1.0, devices=8)], (), "/c /b /a", True),
    # Few runs of unknown length come after the others; where many are, devices count.
    ([UNTIMED, *(run(f"/{n}") for n in range(9))], (), "/0 /1 /2 /3 /4 /5 /6 /7 /8 /untimed", True),
    ([run("/a"), UNTIMED, run("/c", devices=2)], (), "/untimed /c /a", False),
    ([run("/a", saving_share=None), run("/b")], (), "/b /a", True),
    # Dollars go before hours:
    ([run("/a", hours=5.0, device_name="Tesla T4"), run("/dear")], ("0.40", "A100=3.00"), "/dear /a", True),
    # Ten minutes of training in a run of three hours, most of which is one slow loop.
    ([run("/steps", hours=2.0), WHOLE], (), "/whole /steps", True),
)
def test_runs_are_ranked_by_what_they_waste(
    rows: list[FleetRun], prices: tuple[str, ...], places: str, *, by_hours: bool
) -> None:
    made = reported(rows, prices)
    assert [one.place for one in made.runs] == places.split()
    assert made.by_hours is by_hours


def test_what_runs_waste_together() -> None:
    made = reported([run("/a", hours=1.0), run("/b", hours=3.0), run("/c", hours=1.0, devices=8)])
    assert (made.timed, made.devices, made.device_hours) == (3, 10, 12.0)
    assert (made.waste.device_hours, made.waste.devices) == pytest.approx((0.4 * 12, 0.4 * 10))
    unknown = reported([run("/a", saving_share=None), run("/b")])  # it is not called healthy
    assert (unknown.waste.runs, unknown.devices) == (1, 1)
    nothing = reported([])
    assert (nothing.runs, nothing.faults, nothing.jobs, nothing.waste.devices) == ((), (), (), 0.0)


def test_what_runs_waste_in_dollars() -> None:
    rows = [run("/cheap", hours=5.0, device_name="Tesla T4"), run("/dear", hours=2.0)]
    made = reported(rows, ("0.40", "A100=3.00"))
    assert [one.wasted_usd for one in made.runs] == [pytest.approx(2.4), pytest.approx(0.8)]
    assert (made.waste.usd, made.waste.usd_per_hour) == pytest.approx((3.2, 0.4 * 3.4))
    assert [reported(rows, prices).unpriced for prices in ((), ("A100=3",))] == [0, 1]


def test_a_fault_costs_what_its_change_alone_saves_in_all_runs() -> None:
    rows = [
        run("/a", findings=(finding("one", 0.3), finding("two", 0.2)), hours=1.0),
        run("/b", findings=(finding("two", 0.2),), hours=10.0, saving_share=0.2),
        run("/c", findings=(finding("two", None),)),
    ]
    two, one = reported(rows).faults
    assert (two.rule, two.waste.runs, two.unknown, two.worst) == ("two", 2, 1, "/b")
    assert two.waste.device_hours == pytest.approx(0.2 * 1 + 0.2 * 10)
    assert one.waste.device_hours == pytest.approx(0.3)
    assert not two.waste.at_most


def test_a_fault_costs_no_more_than_all_changes_save_and_runs_without_a_cost_are_not_counted() -> None:
    nothing, some = (run(place, findings=(finding("one", share),)) for place, share in (("/a", 0.0), ("/b", 0.2)))
    (fault,) = reported([nothing, some]).faults
    assert (fault.waste.runs, fault.unknown) == (1, 0)
    (fault,) = reported([run(saving_share=0.1, findings=(finding("one", 0.3, "at-most"),))]).faults
    assert fault.waste.device_hours == pytest.approx(0.1 * 2)
    assert fault.waste.at_most


def test_the_worst_run_of_a_fault_is_worst_in_what_faults_are_ranked_by() -> None:
    short = run("/short", hours=0.001, findings=(finding("one", 0.1),))
    others = [
        run(f"/{devices}", hours=None, devices=devices, findings=(finding("one", 0.4),)) for devices in (4, 8)
    ]
    (fault,) = reported([short, *others]).faults
    assert fault.worst == "/8"
    (fault,) = reported([short, run("/long", findings=(finding("one", 0.05),))]).faults
    assert fault.worst == "/long"
    dear = run("/dear", devices=1, device_name="Tesla T4", findings=(finding("one", 0.05),))
    (fault,) = reported([run("/long", findings=(finding("one", 0.1),)), dear], ("T4=90", "1")).faults
    assert fault.worst == "/dear"


def test_the_same_files_at_two_places_count_once() -> None:
    made = reported([run("/b", digest="same"), run("/a", digest="same"), failed("/x"), failed("/y")])
    assert [(one.place, tuple(copy.place for copy in one.copies)) for one in made.runs] == [("/a", ("/b",))]
    assert [one.place for one in made.failed] == ["/x", "/y"]


def test_a_job_is_a_program_on_a_device() -> None:
    rows = [
        run("/c", recorded="2026-11-03", step_ms=30.0),
        run("/a", recorded="2026-11-01", step_ms=20.0),
        run("/b", recorded="2026-11-02", step_ms=25.0, device_name="Tesla T4"),
    ]
    first, second = reported(rows).jobs
    assert [one.step_ms for one in first] == [20.0, 30.0]
    assert [job_cells(job)[4] for job in (first, second)] == ["50 % longer", ""]


def test_what_could_be_saved_of_a_jobs_last_step_is_a_ceiling_where_that_saving_is() -> None:
    """Trap: that of its run has another bound."""
    row = run("/a", saving_share=0.2, run_hours=1.0, run_saving_share=0.1, run_saving_bound="at-most")
    assert job_cells([row])[5] == "20 %"
    assert (
        job_cells([replace(row, saving_bound="at-most", run_saving_bound="expected")])[5]
        == "\N{LESS-THAN OR EQUAL TO} 20 %"
    )


@cases(
    *((price, "is not a price") for price in ("free", "-1", "0", "nan", "A100=", "1e9")),
    *((price, "is not the name of one device") for price in ("A100=3,T4=1", "=3", "a=b=3")),
)
def test_what_is_no_price_of_one_device_is_one_sentence(price: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        device_prices([price])


def test_a_run_wastes_what_it_wastes_as_a_whole_where_that_is_known() -> None:
    made = reported([run("/steps", hours=2.0, saving_share=0.4), WHOLE])
    assert (made.device_hours, made.waste.device_hours) == pytest.approx((5.0, 0.9 * 3 + 0.4 * 2))
    assert made.waste.at_most
    (worst, *_) = made.faults
    assert worst.rule == "slow-prediction"
    assert worst.waste.device_hours == pytest.approx(0.85 * 3)
    training = reported([run("/a", run_hours=3.0, run_saving_share=None)])
    assert (training.device_hours, training.waste.device_hours) == pytest.approx((2.0, 0.8))

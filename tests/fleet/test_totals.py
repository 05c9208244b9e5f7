"""What runs waste together, and how they are ranked."""

from tests.facts.kit import Told, fields
from tests.fleet.runs import failed, finding, reported, run
from tests.kit import *
from tfdoctor.diagnosis.fleet_report import FleetRun
from tfdoctor.fleet.totals import device_prices
from tfdoctor.report.fleet import job_cells

TOLD = Told()
WASTED = "place wasted_device_hours wasted_devices wasted_usd"


def told(rows: list[FleetRun], *prices: str) -> dict[str, object]:
    """Return what is said of runs: by what they are ranked, what each wastes and all together, and why."""
    made = reported(rows, prices)
    known = fields(made, "by_hours timed devices device_hours unpriced waste")
    runs = [fields(one, WASTED) | {"copies": [copy.place for copy in one.copies]} for one in made.runs]
    jobs = [" | ".join(map(str, job_cells(job))) for job in made.jobs]
    return (
        known
        | {"faults": made.faults, "failed": [one.place for one in made.failed], "jobs": jobs}
        | {f"run {number}": one for number, one in enumerate(runs)}
    )


def faulty(place: str, *shares: float, **more: Any) -> FleetRun:
    """A run with the faults "one" and "two", whose changes save these shares."""
    found = (finding(rule, share) for rule, share in zip(("one", "two"), shares, strict=False))
    return run(place, findings=tuple(found), **more)


UNTIMED = run("/untimed", hours=None, devices=8)
WHOLE = run(
    "/whole", hours=0.2, saving_share=0.5, run_hours=3.0, run_saving_share=0.9, run_saving_bound="at-most",
    findings=(replace(finding("slow-prediction", None), run_share=0.85),),
)  # fmt: skip
THREE = run("/a", hours=1.0), run("/b", hours=3.0), run("/c", hours=1.0, devices=8)
BOTH = (
    faulty("/a", 0.3, 0.2, hours=1.0),
    run("/b", findings=(finding("two", 0.2),), hours=10.0, saving_share=0.2),
    run("/c", findings=(finding("two", None),)),
)
AT_MOST, MANY = finding("one", 0.3, "at-most"), [faulty(f"/{n}", 0.4, hours=None, devices=n) for n in (4, 8)]
SAME = run("/b", digest="same"), run("/a", digest="same")
CHEAP, SHORT = run("/cheap", hours=5.0, device_name="Tesla T4"), faulty("/short", 0.1, hours=0.001)
DEAR = faulty("/dear", 0.05, devices=1, device_name="Tesla T4")
ROW = run("/a", saving_share=0.2, run_hours=1.0, run_saving_share=0.1, run_saving_bound="at-most")

TOLD[lambda *rows: told([*rows])] = {
    "three runs": THREE,
    "a run of unknown saving is not called healthy": (run("/a", saving_share=None), run("/b")),
    "no runs": (),
    "few runs of unknown length come last": (UNTIMED, *(run(f"/{n}") for n in range(9))),
    "where many are of unknown length, devices count": (run("/a"), UNTIMED, run("/c", devices=2)),
    # Ten minutes of training in a run of three hours, most of which is one slow loop.
    "a run wastes what it wastes as a whole": (run("/steps", hours=2.0), WHOLE),
    "a run that trains alone": run("/a", run_hours=3.0, run_saving_share=None),
    "a fault costs what its change alone saves in all runs": BOTH,
    "a run without a cost is not counted": (faulty("/a", 0.0), faulty("/b", 0.2)),
    "a fault costs no more than all changes save": run(saving_share=0.1, findings=(AT_MOST,)),
    "the worst run of a fault, by devices": (SHORT, *MANY),
    "the worst run of a fault, by hours": (SHORT, faulty("/long", 0.05)),
    "the same files at two places count once": (*SAME, failed("/x"), failed("/y")),
    "a job is a program on a device": (
        run("/c", recorded="2026-11-03", step_ms=30.0),
        run("/a", recorded="2026-11-01", step_ms=20.0),
        run("/b", recorded="2026-11-02", step_ms=25.0, device_name="Tesla T4"),
    ),
    # Trap: what could be saved of a job's last step is a ceiling where that saving is, not that of its run.
    "a saving of the step, and a ceiling of the run": ROW,
    "a ceiling of the step": replace(ROW, saving_bound="at-most", run_saving_bound="expected"),
}
TOLD[told] = {
    "dollars go before hours": ([CHEAP, run("/dear")], "0.40", "A100=3.00"),
    "a device without a price": ([CHEAP, run("/dear")], "A100=3"),
    "the worst run of a fault, by dollars": ([faulty("/long", 0.1), DEAR], "T4=90", "1"),
}
NO_PRICES = ("free", "-1", "0", "nan", "A100=", "1e9", "A100=3,T4=1", "=3", "a=b=3")
TOLD[lambda price: device_prices([price])] = {f"the price {price}": price for price in NO_PRICES}

test_totals = TOLD.test("totals")

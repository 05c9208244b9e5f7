"""Rows of many runs, for tests."""

from typing import Any

from tfdoctor.diagnosis.fleet_report import FleetFinding, FleetReport, FleetRun
from tfdoctor.fleet.totals import device_prices, report

TITLES = {"input-bound": "Training steps wait for input", "float32-matmul": "Matmuls run in float32"}


def run(place: str = "/runs/a", **fields: Any) -> FleetRun:
    """A run of one step of 20 ms on one GPU, of which 40 % could be saved, for two hours."""
    known: dict[str, Any] = {
        "key": f"key of {place}", "digest": f"digest of {place}", "stamp": "stamp", "settings": "settings",
        "recorded": "2026-11-01T10:00:00Z", "script": "project/train.py", "user": "ada", "device": "GPU",
        "device_name": "NVIDIA A100-SXM4-40GB", "devices": 1, "steps": 20, "hours": 2.0, "step_ms": 20.0,
        "parts_ms": {"input": 8.0, "device": 12.0}, "trust": "high", "saving_share": 0.4,
        "findings": (finding("input-bound", 0.4),),
    }  # fmt: skip
    return FleetRun(place=place, **(known | fields))


def finding(rule: str, share: float | None, bound: str = "expected") -> FleetFinding:
    return FleetFinding(rule, "warning", share, bound, f"{rule} was found", "train.py:14")


def failed(place: str = "/runs/broken") -> FleetRun:
    return FleetRun(
        place=place, key=place, digest=place, failure="unreadable", error=f"{place} is damaged: record again."
    )


def several() -> list[FleetRun]:
    """Runs of three jobs: on GPUs, on CPUs, of unknown length, and one that cannot be read."""
    week = [
        run(f"gs://team/ada/{day}", recorded=f"2026-11-0{day}T10:00:00Z", step_ms=20.0 + day, hours=2.0 * day)
        for day in range(1, 7)
    ]
    cpu: dict[str, Any] = {"device": "CPU", "device_name": "AMD EPYC"}
    slow = FleetFinding(
        "slow-prediction", "critical", None, "at-most", "predict is called for each example", "embed.py:20", 0.8
    )
    return [
        *week,
        run(
            "gs://team/grace/resnet/plugins/profile/2026_11_03_09_00_00",
            script="", recorded="2026-11-03T09:00:00", user="", hours=None, devices=8,
            device_name="NVIDIA H100 80GB HBM3", saving_share=0.25, saving_bound="at-most",
            findings=(finding("float32-matmul", 0.25, "at-most"), finding("hot-operation", None)),
        ),
        run("/home/user/tiny", **cpu, script="tiny/<img src=x>.py", saving_share=0.0, findings=(), hours=0.001),
        run(
            "/home/user/embed", **cpu, script="search/embed.py", step_ms=None, parts_ms=None, saving_share=None,
            missing="the run trains nothing", run_hours=1.5, run_saving_share=0.8, run_saving_bound="at-most",
            findings=(slow,),
        ),
        run("/home/user/odd", step_ms=None, saving_share=None, findings=(), missing="no step was found"),
        failed(),
    ]  # fmt: skip


def reported(rows: list[FleetRun] | None = None, prices: tuple[str, ...] = ()) -> FleetReport:
    return report(several() if rows is None else rows, device_prices(prices), TITLES)

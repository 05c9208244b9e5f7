"""What places and manifests say of a run's program, time and length."""

from typing import Any

from tests.facts.kit import Told
from tfdoctor.fleet import examine, places
from tfdoctor.recording import Manifest
from tfdoctor.recording.typed import read

TOLD = Told()


PLACES = (
    *("/runs/mnist/2026-11-01", "gs://bucket/team/resnet/plugins/profile/2026_11_01_10_00_00"),
    *("/logs/fit/20261101-100000/plugins/profile/run", "/traces/slow/host.xplane.pb", "/runs/mnist/run-00010"),
    *("/runs/mnist/v2", "/profile/run", "/2026"),
)
COMMANDS = {
    "python train.py": "",
    "python ../text/run.py --epochs=3": "",
    "python -m models.train": "models.train",
    "bash launch.sh": "",
}


def named(place: str) -> dict[str, str]:
    """Return what a place is called, and its job: without a script, and with one."""
    jobs = {"job": places.job(place, ""), "job of a script": places.job(place, "project/train.py")}
    return {"title": places.title(place), **jobs}


def script(command: str) -> str:
    return examine.script(command.split(), COMMANDS[command], "/home/user/vision")


TOLD[named] = {place: place for place in PLACES}
TOLD[script] = {command: command for command in COMMANDS}


def hours(step_ms: float | None, *clock_s: int, seen_all: bool = False, **steps: Any) -> float | None:
    """Return how long a run trained of which the window began at 10⁹ s, with the clock at these times after it."""
    clock = [{"unix_ns": 10**18 + s * 10**9} for s in clock_s]
    told = {"window": {"started_unix_ns": 10**18}, "steps": {"seen_all": seen_all, **steps}, "clock": clock}
    return examine.hours(read(Manifest, told, []), step_ms)


@TOLD
def how_long_a_run_trained() -> object:
    return {
        "all steps are counted": hours(500.0, seen=7200, seen_all=True),
        "it was watched to its end": hours(500.0, -1, 7200, seen=230),
        "it was killed": hours(500.0, -1, seen=230),
        "its step is unknown": hours(None, seen=7200, seen_all=True),
        "nothing is known": examine.hours(None, 500.0),
    }


test_names = TOLD.test("names")

"""What places and manifests say of a run's program, time and length."""

from typing import Any

from tests.cases import cases
from tfdoctor.fleet import examine, places
from tfdoctor.recording import Manifest
from tfdoctor.recording.typed import read


@cases(
    ("/runs/mnist/2026-11-01", "2026-11-01", "runs/mnist"),
    ("gs://bucket/team/resnet/plugins/profile/2026_11_01_10_00_00", "resnet", "team/resnet"),
    ("/logs/fit/20261101-100000/plugins/profile/run", "20261101-100000", "logs/fit"),
    ("/traces/slow/host.xplane.pb", "slow", "traces/slow"),
    ("/runs/mnist/run-00010", "run-00010", "runs/mnist"),
    ("/runs/mnist/v2", "v2", "runs/mnist"),
    ("/profile/run", "/profile/run", "/profile/run"),
    ("/2026", "2026", "/2026"),
)
def test_names_of_places(place: str, title: str, job: str) -> None:
    assert places.title(place) == title
    assert places.job(place, "") == job
    assert places.job(place, "project/train.py") == "project/train.py"


def manifest(**fields: Any) -> Manifest:
    return read(Manifest, {"cwd": "/home/user/vision", **fields}, [])


@cases(
    ("python train.py", "", "vision/train.py"),
    ("python ../text/run.py --epochs=3", "", "text/run.py"),
    ("python -m models.train", "models.train", "vision/models.train"),
    ("bash launch.sh", "", ""),
)
def test_the_script_of_a_run(command: str, module: str, script: str) -> None:
    assert examine.script(command.split(), module, "/home/user/vision") == script


def test_how_long_a_run_trained() -> None:
    window = {"started_unix_ns": 10**18}
    counted = manifest(window=window, steps={"seen": 7200, "seen_all": True})
    assert examine.hours(counted, 500.0) == 1.0
    end = [{"unix_ns": 10**18 - 10**9}, {"unix_ns": 10**18 + 7200 * 10**9}]
    watched = manifest(window=window, steps={"seen": 230, "seen_all": False}, clock=end)
    assert examine.hours(watched, 500.0) == 2.0
    killed = manifest(window=window, steps={"seen": 230, "seen_all": False}, clock=end[:1])
    assert examine.hours(killed, 500.0) is None
    assert examine.hours(counted, None) is None
    assert examine.hours(None, 500.0) is None

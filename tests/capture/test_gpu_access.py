"""What keeps TensorFlow from a GPU, against stand-ins for the driver's library."""

from tests.capture.kit import *
from tests.capture.running import *

BUILD = {"is_cuda_build": True, "cuda_version": "12.5.1", "cudnn_version": "9"}

ASK = """
import json, sys
from tfdoctor.capture.agent.program import devices
print(json.dumps(devices.loading_errors(json.loads(sys.argv[1]))))
"""


def loading(folder: Path, build: Any = BUILD) -> Any:
    """Return what a process says that finds its libraries in a folder."""
    env = environment(LD_LIBRARY_PATH=str(folder), PYTHONPATH=str(SOURCES))
    return json.loads(ended([sys.executable, "-c", ASK, json.dumps(build)], folder, env=env).stdout)


@cases(
    (["-DERROR=100"], BUILD, {"driver": "CUDA_ERROR_NO_DEVICE (100)"}),
    (["-DERROR=999"], BUILD, {"driver": "CUDA_ERROR_UNKNOWN (999)"}),
    (["-DGPUS=0"], BUILD, {"driver": "the driver shows no GPU"}),
    ([], {**BUILD, "cuda_version": "99.0"}, {"missing": []}),  # of an unknown build no library is claimed
)
def test_the_drivers_error_has_its_name(flags: Any, build: Any, said: Any, tmp_path: Path) -> None:
    compiled("cuda_stub.c", tmp_path / "libcuda.so.1", *flags)
    assert loading(tmp_path, build) == said


def test_libraries_that_cannot_be_loaded_are_named_and_others_are_not(tmp_path: Path) -> None:
    """Without the driver the loader tells that, and nothing of the others."""
    (why,) = loading(tmp_path).values()
    assert why.startswith("libcuda.so.1: cannot open shared object file")
    compiled("cuda_stub.c", tmp_path / "libcuda.so.1")
    names = {one["name"] for one in loading(tmp_path)["missing"]}
    assert {"libcudart.so.12", "libcudnn.so.9"} <= names
    for name in sorted(names - {"libcudnn.so.9"}):
        compiled("cuda_stub.c", tmp_path / name)
    (left,) = loading(tmp_path)["missing"]
    assert (left["name"], "cannot open shared object file" in left["why"]) == ("libcudnn.so.9", True)


def test_device_files_count_only_where_they_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = agent.load("program.devices")
    for folder in (tmp_path / "none", tmp_path):
        monkeypatch.setattr(access, "DEVICES", str(folder))
        assert access.device_files() == (0, False)
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert access.device_files() == (2, True)
    if os.geteuid():  # root may open them all
        for name in ("nvidia0", "nvidia1"):
            (tmp_path / name).chmod(0)
        assert access.device_files() == (2, False)


def test_the_cache_of_cuda_tells_what_was_added_to_it(tmp_path: Path) -> None:
    cache = agent.load("program.devices").kernel_cache
    (tmp_path / "a").mkdir()
    for name, size, at in (("index", 10, 900.0), ("a/old", 100, 500.0), ("a/new", 1000, 960.0)):
        (tmp_path / name).write_bytes(bytes(size))
        os.utime(tmp_path / name, (at, at))
    known = {"CUDA_CACHE_PATH": str(tmp_path), "CUDA_CACHE_MAXSIZE": "4294967296"}
    told = {"disabled": False, "bytes": 1110, "limit": "4294967296", "written": 2, "seconds": 60.0}
    assert cache(900.0, known) == told
    assert cache(1000.0, known)["written"] == 0
    assert cache(0.0, {"CUDA_CACHE_PATH": str(tmp_path / "none")})["bytes"] == 0
    assert cache(0.0, {"CUDA_CACHE_DISABLE": "1"}) == {"disabled": True}

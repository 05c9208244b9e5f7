"""What keeps TensorFlow from a GPU, against stand-ins for the driver's library and for NVML."""

from tests.capture.kit import *
from tests.capture.running import profiled, training
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Finding, Severity

FOLDER = Path(__file__).parent

BUILD = {"is_cuda_build": True, "cuda_version": "12.5.1", "cudnn_version": "9"}

ASK = """
import json, sys
from tfdoctor.capture.agent.program import devices

print(json.dumps(devices.loading_errors(json.loads(sys.argv[1]))))
"""


def compiled(source: str, library: Path, *flags: str) -> None:
    """Compile a stand-in, or skip the test where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library.parent.mkdir(exist_ok=True)
    build = [compiler, "-shared", "-fPIC", *flags, "-o", str(library), str(FOLDER / source)]
    subprocess.run(build, check=True)


def loading(folder: Path, build: Any = BUILD) -> dict[str, Any]:
    """Return what a process says that finds its libraries in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(build)],
        env=environment(LD_LIBRARY_PATH=str(folder), PYTHONPATH=str(SOURCES)),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    ("flags", "build", "said"),
    [
        (["-DERROR=100"], BUILD, {"driver": "CUDA_ERROR_NO_DEVICE (100)"}),
        (["-DERROR=999"], BUILD, {"driver": "CUDA_ERROR_UNKNOWN (999)"}),
        (["-DGPUS=0"], BUILD, {"driver": "the driver shows no GPU"}),
        ([], {**BUILD, "cuda_version": "99.0"}, {"missing": []}),  # of an unknown build no library is claimed
    ],
)
def test_the_drivers_error_has_its_name(
    tmp_path: Path, flags: list[str], build: dict[str, Any], said: dict[str, Any]
) -> None:
    compiled("cuda_stub.c", tmp_path / "libcuda.so.1", *flags)
    assert loading(tmp_path, build) == said


def test_libraries_that_cannot_be_loaded_are_named_and_others_are_not(tmp_path: Path) -> None:
    """Without the driver the loader tells that, and nothing of the others."""
    (why,) = loading(tmp_path).values()
    assert why.startswith("libcuda.so.1: cannot open shared object file")
    compiled("cuda_stub.c", tmp_path / "libcuda.so.1")
    names = {one["name"] for one in loading(tmp_path)["missing"]}
    assert "libcudart.so.12" in names
    assert "libcudnn.so.9" in names
    for name in sorted(names - {"libcudnn.so.9"}):
        compiled("cuda_stub.c", tmp_path / name)
    (left,) = loading(tmp_path)["missing"]
    assert left["name"] == "libcudnn.so.9"
    assert "cannot open shared object file" in left["why"]


def test_device_files_count_only_where_they_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = agent.load("program.devices")
    monkeypatch.setattr(access, "DEVICES", str(tmp_path / "none"))
    assert access.device_files() == (0, False)
    monkeypatch.setattr(access, "DEVICES", str(tmp_path))
    assert access.device_files() == (0, False)
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert access.device_files() == (2, True)
    if os.geteuid():  # root may open them all
        (tmp_path / "nvidia0").chmod(0)
        (tmp_path / "nvidia1").chmod(0)
        assert access.device_files() == (2, False)


def test_the_cache_of_cuda_tells_what_was_added_to_it(tmp_path: Path) -> None:
    cache = agent.load("program.devices").kernel_cache
    (tmp_path / "a").mkdir()
    for name, size, at in (("index", 10, 900.0), ("a/old", 100, 500.0), ("a/new", 1000, 960.0)):
        (tmp_path / name).write_bytes(bytes(size))
        os.utime(tmp_path / name, (at, at))
    known = {"CUDA_CACHE_PATH": str(tmp_path), "CUDA_CACHE_MAXSIZE": "4294967296"}
    assert cache(900.0, known) == {
        "disabled": False,
        "bytes": 1110,
        "limit": "4294967296",
        "written": 2,
        "seconds": 60.0,
    }
    assert cache(1000.0, known)["written"] == 0
    assert cache(0.0, {"CUDA_CACHE_PATH": str(tmp_path / "none")})["bytes"] == 0
    assert cache(0.0, {"CUDA_CACHE_DISABLE": "1"}) == {"disabled": True}


@pytest.mark.tensorflow
def test_a_run_beside_a_gpu_that_tensorflow_does_not_get_is_told(tmp_path: Path) -> None:
    """TensorFlow asks the stand-in for the driver, NVML the one for its library."""
    libraries = tmp_path / "lib"
    compiled("nvml_stub.c", libraries / "libnvidia-ml.so.1")
    compiled("cuda_stub.c", libraries / "libcuda.so.1", "-DERROR=100")
    env = environment(LD_LIBRARY_PATH=str(libraries))
    del env["CUDA_VISIBLE_DEVICES"]
    run = profiled(training(tmp_path), tmp_path / "out", env=env, steps=5, sample_every_ms=50)
    assert run.code == 0, run.stderr
    results = diagnose(run.recording, all_rules(), "").results
    verdict = next(result.outcome for result in results if result.rule.name == "missing-gpu")
    assert isinstance(verdict, Finding)
    assert verdict.severity is Severity.WARNING
    assert verdict.summary == (
        "The run computes on the CPU beside Stub 0: the driver does not answer (CUDA_ERROR_NO_DEVICE (100))"
    )

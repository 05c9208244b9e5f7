"""NVML against a stand-in for the driver's library, loaded as the real one would be."""

from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pynvml

from tests.capture.kit import *
from tests.capture.running import ended
from tfdoctor.capture.sampler.devices import has_nvidia_gpu, visible
from tfdoctor.capture.sampler.nvml import FAILURES, Probe

STUB = Path(__file__).with_name("nvml_stub.c")

SAMPLE = """
import json, os, sys, time
from dataclasses import asdict
from pathlib import Path
from tfdoctor.capture.sampler import SamplingThread
from tfdoctor.capture.sampler.nvml import NvmlSampler

samples = SamplingThread(Path(sys.argv[1]), 20, [NvmlSampler(Path(sys.argv[3]))])
samples.start(os.getpid())
(state,) = samples.states
while state.count < int(sys.argv[2]) and state.status != "unavailable":  # a busy machine takes its time
    time.sleep(0.01)
time.sleep(0.3)  # another reading begins
print(json.dumps([asdict(sampling) for sampling in samples.stop()]))
"""


Sampled = tuple[dict[str, Any], list[dict[str, Any]]]


def sampled(tmp_path: Path, flags: str, count: int) -> Sampled:
    """Sample the stand-in, compiled with these flags, so often and in a process of its own.

    Return what is said, and samples.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    given = (f"-D{flag}" for flag in flags.split())
    build = [compiler, "-shared", "-fPIC", "-O1", *given, "-o", str(tmp_path / "libnvidia-ml.so.1"), str(STUB)]
    subprocess.run(build, check=True)
    out, gpus = tmp_path / "samples.jsonl", {"CUDA_VISIBLE_DEVICES": "GPU-00000000,GPU-00000001"}
    words = [sys.executable, "-c", SAMPLE, str(out), str(count), str(tmp_path / "bus")]
    seen = environment(LD_LIBRARY_PATH=str(tmp_path), PYTHONPATH=str(SOURCES)) | gpus
    done = ended(words, tmp_path, env=seen, timeout_s=60)
    (summary,) = json.loads(done.stdout)
    return summary, [json.loads(line) for line in out.read_text().splitlines()]


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    return sampled(tmp_path_factory.mktemp("usual"), "", 11)


VARIANTS: dict[str, tuple[int, str]] = {
    # The start of the driver takes time, another process works, the link is narrow, and one GPU is lost.
    "board": (6, "OPEN_US=300000 PERSISTENCE=0 OTHER_SM=40 PCIE_WIDTH=4 LOST_AFTER=2"),
    "divided": (6, "MIG"),
    "older driver": (3, "OLD_DRIVER"),
    "hangs": (1, "HANG_AFTER=1"),  # and the process ends, below whose thread NVML is not shut down
    "no answer": (1, "BROKEN"),
    "no GPU": (1, "BROKEN"),
}


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sampled]:
    """Sample boards and drivers as they may be, all at once.

    Trap: NVIDIA's cards have an audio device as well.
    """
    folders = {name: tmp_path_factory.mktemp(name.replace(" ", "-")) for name in VARIANTS}
    for name, folder in folders.items():
        cards = [("0x10de", "0x040300"), ("0x8086", "0x030000"), *[("0x10de", "0x030200")] * (name == "no answer")]
        for number, (vendor, kind) in enumerate(cards):
            (folder / "bus" / str(number)).mkdir(parents=True)
            (folder / "bus" / str(number) / "vendor").write_text(f"{vendor}\n")
            (folder / "bus" / str(number) / "class").write_text(f"{kind}\n")
        assert has_nvidia_gpu(folder / "bus") is (name == "no answer")
    with ThreadPoolExecutor() as pool:
        runs = {
            name: pool.submit(sampled, folders[name], flags, count) for name, (count, flags) in VARIANTS.items()
        }
    return {name: run.result() for name, run in runs.items()}


VARIES = {"energy_j", "mig", "gpm_window_s", "sm_pct", "occupancy_pct", "tensor_pct", "tensor_hmma_pct", "dram_pct"}
VARIES |= {"pcie_tx_mib_s", "pcie_rx_mib_s"}  # in a first sample that took long


def test_every_gpu_tells_what_it_can(
    usual: Sampled, variants: dict[str, Sampled], golden: Callable[[str, str], None]
) -> None:
    told = {}
    for name, (summary, samples) in {"usual": usual, **variants}.items():
        gpus = samples[0]["gpu"] if samples else []
        gpus = [{key: value for key, value in gpu.items() if key not in VARIES} for gpu in gpus]
        reason = re.sub(r"after \d s", "after some s", summary["reason"])
        told[name] = {"status": summary["status"], "absent": summary["absent"], "reason": reason, "gpu": gpus}
    golden("nvml.json", json.dumps(told, indent=1))
    summary, samples = usual
    assert summary["count"] == len(samples) >= 2
    assert 5000.0 < samples[0]["gpu"][0]["energy_j"] < 5000.0 + 412.5 * 60
    assert samples[0]["driver"]["version"] == "580.95.05"
    assert not has_nvidia_gpu(Path("nowhere"))


def test_energy_is_counted_by_the_driver(usual: Sampled) -> None:
    rows = [(sample["unix_ns"], sample["gpu"][0]) for sample in usual[1]]
    (begin, before), *_, (end, after) = [(at, gpu["energy_j"]) for at, gpu in rows if "energy_j" in gpu]
    assert 1e9 * (after - before) / (end - begin) == pytest.approx(412.5, rel=0.1)


def test_readings_are_no_more_frequent_than_they_are_good_for(usual: Sampled) -> None:
    """Every 20 ms was asked for: load is read 5 times a second, power once, the board each 5 s."""

    def gaps(what: str) -> list[float]:
        """Return the s between readings, by their own times."""
        times = [sample["unix_ns"] / 1e9 for sample in usual[1] if what in sample["gpu"][0]]
        return [after - before for before, after in pairwise(times)]

    for what, every_s, fewest in (
        ("gpu_pct", 0.2, 10),
        ("power_w", 1.0, 1),
        ("processes", 5.0, 0),
        ("board", 5.0, 0),
    ):
        assert len(gaps(what)) >= fewest
        assert min(gaps(what), default=every_s) > 0.85 * every_s


def test_the_matrix_units_activity_comes_from_gpm(usual: Sampled) -> None:
    told = next(sample["gpu"][0] for sample in usual[1] if "tensor_pct" in sample["gpu"][0])
    assert (told["tensor_pct"], told["sm_pct"], told["dram_pct"]) == (40.0, 12.5, 12.5)
    assert 0.4 < told["gpm_window_s"] <= (usual[1][-1]["unix_ns"] - usual[1][0]["unix_ns"]) / 1e9 + 0.5
    assert not {"nvlink_rx_mib_s", "tensor_imma_pct"} & {*told}  # an error of its own, and no number
    assert all("tensor_pct" not in sample["gpu"][1] for sample in usual[1])


def test_later_readings_of_what_a_board_and_a_driver_may_be(variants: dict[str, Sampled]) -> None:
    _, samples = variants["board"]
    assert 600 <= samples[0]["driver"]["opened_ms"] < 60_000
    assert all("driver" not in sample for sample in samples[1:])
    assert (samples[-1]["gpu"][0]["gpu_pct"], "gpu_pct" in samples[-1]["gpu"][1]) == (75, False)
    parts = [sample["gpu"][0]["mig"] for sample in variants["divided"][1] if "mig" in sample["gpu"][0]]
    assert [(part["instance"], part["tensor_pct"]) for part in parts[0]] == [(3, 12.0), (5, 20.0)]
    assert variants["older driver"][1][-1]["gpu"][0]["gpu_pct"] == 75
    assert [len(variants[name][1]) for name in ("hangs", "no answer", "no GPU")] == [1, 0, 0]


UUIDS = ["GPU-aaaa", "GPU-bbbb"]


@cases(
    ({}, [True, True]),
    ({"CUDA_VISIBLE_DEVICES": ""}, [False, False]),
    ({"CUDA_VISIBLE_DEVICES": "-1"}, [False, False]),
    ({"CUDA_VISIBLE_DEVICES": "GPU-bb"}, [False, True]),
    ({"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [False, True]),
    ({"CUDA_VISIBLE_DEVICES": "1"}, [None, None]),  # the fastest first: which is that?
    ({"CUDA_VISIBLE_DEVICES": "MIG-1234"}, [None, None]),
)
def test_which_gpus_the_run_sees(given: dict[str, str], seen: list[bool | None]) -> None:
    one = visible({"CUDA_VISIBLE_DEVICES": "0"}, UUIDS[:1])  # which has one number
    assert (visible(given, UUIDS), one) == (seen, [True])


MISMATCH, TIMEOUT = pynvml.NVMLLibraryMismatchError("is no NVMLError"), pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
CODES = ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "NO_PERMISSION", "GPU_IS_LOST")


@cases(
    *(([pynvml.NVMLError(getattr(pynvml, f"NVML_ERROR_{code}")), 3], [None, None]) for code in CODES),
    ([MISMATCH, 3], [None, None]),
    ([TIMEOUT] * FAILURES + [3], [None] * (FAILURES + 1)),
    ([TIMEOUT, 3] * FAILURES, [None, 3] * FAILURES),  # a success forgives what was before
)
def test_a_call_that_fails_for_good_or_too_often_is_given_up(
    answers: list[Exception | int], given: list[int | None]
) -> None:
    probe = Probe(Mock(side_effect=answers))
    assert ([probe() for _ in given], probe.dead) == (given, given[-1] is None)

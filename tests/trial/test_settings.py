"""The settings that are tried, and those that are not, by machine and recording."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.edits.kit import recorded
from tfdoctor.capture.agent.trial.settings import NO_XLA, POOL_THREADS
from tfdoctor.capture.plan import Kind
from tfdoctor.recording import HostMachine, Recording
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.typed import read
from tfdoctor.trial import settings
from tfdoctor.trial.program import RecordedProgram
from tfdoctor.trial.settings import Machine

CPU = ("/device:CPU:0",)
GPU = ("/device:CPU:0", "/device:GPU:0")


def machine(cores: int = 8, physical: int | None = 4, usable: int = 8, *flags: str) -> Machine:
    return Machine(cores, physical, usable, HostMachine(cpu_flags=flags))


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what the machine of the test has."""
    for name in (XLA, INTER, INTRA, ONEDNN, MODE, "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(settings, "_tcmalloc", lambda: "")


def proposed(
    here: Machine, environment: Mapping[str, str] | None = None, **program: Any
) -> tuple[dict[str, Mapping[str, object]], dict[str, str]]:
    """Return what each setting sets, by name, and why the others are not tried."""
    base = recorded(Path(), [])
    data = {"run": {"devices": CPU, "jit_compile": False}, **program}
    recording = Recording(None, base.manifest, (), read(ProgramRecord, data, []), (), ())
    command = RecordedProgram(("python",), Path(), Kind.SCRIPT, environment or {})
    tried, useless = settings.of_recording(recording, command, here)
    return ({one.name: {**one.environment, **one.runner} for one in tried}, {one.name: one.why for one in useless})


FED = {"datasets": [{"id": 3, "class": "BatchDataset", "options": {}}], "feeds": 3}
OWN_POOL = {"id": 0, "class": "BatchDataset", "options": {"threading.private_threadpool_size": 3}}
INTER, INTRA = "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"
XLA, ONEDNN, MODE = "TF_XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS", "TF_GPU_THREAD_MODE"
VNNI, AVX2 = (machine(8, 4, 8, flag) for flag in ("avx512_vnni", "avx2"))
NUMBERS, POOL = "other numbers of intra-op threads", "threads of their own for tf.data"
KERNELS = "threads of their own for GPU kernels"


ANY = machine()


def threads(kind: str, *numbers: int) -> dict[str, dict[str, str]]:
    """Return what these numbers of threads set, by name."""
    variable = f"TF_NUM_{kind.replace('-', '').upper()}_THREADS"
    return {f"{n} {kind} thread{'s' if n > 1 else ''}": {variable: str(n)} for n in numbers}


def xla(flags: str = "") -> dict[str, dict[str, str]]:
    return {"XLA for all graphs": {XLA: f"{flags} {settings.CLUSTERING}".strip()}}


@pytest.mark.parametrize(
    ("about", "here", "environment", "program", "tried", "useless"),
    [
        # Numbers of threads that differ from the default, which may be that of the environment:
        ("intra-op", ANY, {}, {}, threads("intra-op", 1, 4), {}),
        ("inter-op", ANY, {}, {}, threads("inter-op", 1, 4), {}),
        ("inter-op", machine(64, 64, 6), {}, {}, threads("inter-op", 1, 6), {}),  # a quota of a container
        ("intra-op", machine(1, 1, 1), {}, {}, {}, {NUMBERS: "default is 1"}),
        ("intra-op", machine(8, 8, 8), {INTRA: "1"}, {}, threads("intra-op", 8), {}),
        ("intra-op", ANY, {}, {"run": {"intra_op_threads": 2}}, {}, {NUMBERS: "the program sets"}),
        ("intra-op", ANY, {}, {"run": {"devices": GPU}}, {}, {NUMBERS: "runs on a GPU"}),
        # A pool of threads needs a pipeline:
        ("tf.data", ANY, {}, {}, {}, {POOL: "no tf.data pipeline feeds the training"}),
        ("tf.data", machine(8, 4, 6), {}, FED, {POOL: {POOL_THREADS: 6}}, {}),
        ("tf.data", ANY, {}, {"datasets": [OWN_POOL], "feeds": 0}, {}, {POOL: "the program sets"}),
        # XLA and oneDNN are tried the other way round:
        ("XLA", ANY, {}, {"run": {"jit_compile": True}}, {"XLA off": {NO_XLA: 1}}, {"XLA for": "compiled"}),
        ("XLA", ANY, {XLA: "--tf_xla_auto_jit=2 --x"}, {}, {"XLA off": {XLA: "--x"}}, {"XLA for": "already"}),
        ("XLA", ANY, {XLA: "--x"}, {"run": {"jit_compile": False}}, xla("--x"), {"XLA off": "does not use"}),
        ("XLA", ANY, {}, {"run": {"jit_compile": None}}, xla(), {"XLA off": "not recorded"}),
        ("XLA", ANY, {}, {"run": {"run_eagerly": True}}, {}, {"XLA": "eagerly"}),
        ("oneDNN", VNNI, {}, {}, {"oneDNN off": {ONEDNN: "0"}}, {}),
        ("oneDNN", AVX2, {}, {}, {"oneDNN on": {ONEDNN: "1"}}, {}),
        ("oneDNN", AVX2, {ONEDNN: "1"}, {}, {"oneDNN off": {ONEDNN: "0"}}, {}),
        ("oneDNN", VNNI, {ONEDNN: "0"}, {}, {"oneDNN on": {ONEDNN: "1"}}, {}),
        ("oneDNN", VNNI, {}, {"run": {"devices": GPU}}, {}, {"oneDNN": "runs on a GPU"}),
        ("GPU", ANY, {}, {}, {}, {KERNELS: "the training uses no GPU"}),
        ("GPU", ANY, {}, {"run": {"devices": GPU}}, {KERNELS: {MODE: "gpu_private"}}, {}),
        ("GPU", ANY, {MODE: "x"}, {"run": {"devices": GPU}}, {}, {KERNELS: "set already"}),
        ("tcmalloc", ANY, {}, {}, {}, {"tcmalloc": "it is not installed"}),
    ],
)
def test_what_is_tried_and_why_not(
    about: str,
    here: Machine,
    environment: dict[str, str],
    program: dict[str, Any],
    tried: dict[str, object],
    useless: dict[str, str],
) -> None:
    run = {"devices": CPU, **program.get("run", {})}
    found, why = proposed(here, environment, **{**program, "run": run})
    assert {name: sets for name, sets in found.items() if about in name} == tried
    left = {name: one for name, one in why.items() if about in name}
    assert len(left) == len(useless)
    for name, words in useless.items():
        assert [words in one for other, one in left.items() if name in other] == [True]


def test_other_processors_have_no_onednn_to_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    tried, why = proposed(ANY)
    assert not [name for name in tried if "oneDNN" in name]
    assert "aarch64" in why["oneDNN"]


def test_tcmalloc_is_loaded_beside_what_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    library = "/usr/lib/libtcmalloc.so.4"
    monkeypatch.setattr(settings, "_tcmalloc", lambda: library)
    tried, _ = proposed(ANY, {"LD_PRELOAD": "/lib/other.so"})
    assert tried["tcmalloc"] == {"LD_PRELOAD": f"{library}:/lib/other.so"}
    _, why = proposed(ANY, {"LD_PRELOAD": library})
    assert "already" in why["tcmalloc"]


def test_this_machine_can_be_described() -> None:
    here = Machine.this()
    assert 1 <= here.usable <= here.schedulable
    assert here.physical is None or 1 <= here.physical <= here.schedulable

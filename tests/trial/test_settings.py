"""The settings that are tried, and those that are not, by machine and recording."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.edits.recorded import recorded
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
    for name in ("TF_XLA_FLAGS", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS", "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)
    for name in ("TF_ENABLE_ONEDNN_OPTS", "TF_GPU_THREAD_MODE"):
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


def test_threads_are_tried_where_they_differ_from_the_default() -> None:
    tried, _ = proposed(machine(8, 4, 8))
    assert tried["1 intra-op thread"] == {"TF_NUM_INTRAOP_THREADS": "1"}
    assert tried["4 intra-op threads"] == {"TF_NUM_INTRAOP_THREADS": "4"}
    assert tried["4 inter-op threads"] == {"TF_NUM_INTEROP_THREADS": "4"}
    assert "8 intra-op threads" not in tried


def test_a_quota_of_a_container_is_a_number_of_threads_to_try() -> None:
    tried, _ = proposed(machine(64, 64, 6))
    assert {"1 inter-op thread", "6 inter-op threads"} <= set(tried)


def test_one_core_leaves_nothing_to_try() -> None:
    tried, why = proposed(machine(1, 1, 1))
    assert not [name for name in tried if "thread" in name and "intra" in name]
    assert "default is 1" in why["other numbers of intra-op threads"]


def test_the_default_may_be_that_of_the_environment() -> None:
    tried, _ = proposed(machine(8, 8, 8), {"TF_NUM_INTRAOP_THREADS": "1"})
    assert "1 intra-op thread" not in tried
    assert tried["8 intra-op threads"] == {"TF_NUM_INTRAOP_THREADS": "8"}


def test_what_the_program_sets_is_not_tried() -> None:
    options = {"threading.private_threadpool_size": 3}
    tried, why = proposed(
        machine(),
        run={"devices": CPU, "intra_op_threads": 2, "inter_op_threads": 0},
        datasets=[{"id": 0, "class": "BatchDataset", "options": options}],
        feeds=0,
    )
    assert "the program sets" in why["other numbers of intra-op threads"]
    assert "1 inter-op thread" in tried
    assert "the program sets" in why["threads of their own for tf.data"]


@pytest.mark.parametrize(
    ("compiled", "flags", "name", "sets"),
    [
        (True, "", "XLA off", {NO_XLA: 1}),
        (False, "--tf_xla_auto_jit=2 --x", "XLA off", {"TF_XLA_FLAGS": "--x"}),
        (False, "--x", "XLA for all graphs", {"TF_XLA_FLAGS": f"--x {settings.CLUSTERING}"}),
        (None, "", "XLA for all graphs", {"TF_XLA_FLAGS": settings.CLUSTERING}),
    ],
)
def test_xla_is_tried_the_other_way_round(
    *, compiled: bool | None, flags: str, name: str, sets: Mapping[str, object]
) -> None:
    tried, why = proposed(machine(), {"TF_XLA_FLAGS": flags}, run={"devices": CPU, "jit_compile": compiled})
    assert {key: value for key, value in tried.items() if "XLA" in key} == {name: sets}
    assert len([key for key in why if "XLA" in key]) == 1


def test_an_eager_program_has_nothing_for_xla() -> None:
    tried, why = proposed(machine(), run={"devices": CPU, "run_eagerly": True})
    assert not [name for name in tried if "XLA" in name]
    assert "eagerly" in why["XLA"]


@pytest.mark.parametrize(
    ("flags", "value", "name"),
    [
        (("avx512_vnni",), None, "oneDNN off"),
        (("avx2",), None, "oneDNN on"),
        (("avx2",), "1", "oneDNN off"),
        (("avx512_vnni",), "0", "oneDNN on"),
    ],
)
def test_onednn_is_tried_the_other_way_round(flags: tuple[str, ...], value: str | None, name: str) -> None:
    environment = {"TF_ENABLE_ONEDNN_OPTS": value} if value else {}
    tried, _ = proposed(machine(8, 4, 8, *flags), environment)
    assert tried[name] == {"TF_ENABLE_ONEDNN_OPTS": "0" if name.endswith("off") else "1"}
    assert len([key for key in tried if "oneDNN" in key]) == 1


def test_other_processors_have_no_onednn_to_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    tried, why = proposed(machine())
    assert not [name for name in tried if "oneDNN" in name]
    assert "aarch64" in why["oneDNN"]


def test_a_gpu_leaves_out_what_acts_on_the_cpu() -> None:
    tried, why = proposed(machine(), run={"devices": GPU})
    assert {"oneDNN", "other numbers of intra-op threads"} <= set(why)
    assert tried["threads of their own for GPU kernels"] == {"TF_GPU_THREAD_MODE": "gpu_private"}
    _, why = proposed(machine())
    assert why["threads of their own for GPU kernels"] == "the training uses no GPU"


def test_a_pool_of_its_own_needs_a_pipeline() -> None:
    _, why = proposed(machine())
    assert why["threads of their own for tf.data"] == "no tf.data pipeline feeds the training"
    fed = [{"id": 3, "class": "BatchDataset", "options": {}}]
    tried, _ = proposed(machine(8, 4, 6), datasets=fed, feeds=3)
    assert tried["threads of their own for tf.data"] == {POOL_THREADS: 6}


def test_tcmalloc_is_loaded_beside_what_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    _, why = proposed(machine())
    assert why["tcmalloc"] == "it is not installed"
    library = "/usr/lib/libtcmalloc.so.4"
    monkeypatch.setattr(settings, "_tcmalloc", lambda: library)
    tried, _ = proposed(machine(), {"LD_PRELOAD": "/lib/other.so"})
    assert tried["tcmalloc"] == {"LD_PRELOAD": f"{library}:/lib/other.so"}
    _, why = proposed(machine(), {"LD_PRELOAD": library})
    assert "already" in why["tcmalloc"]


def test_this_machine_can_be_described() -> None:
    here = Machine.this()
    assert 1 <= here.usable <= here.schedulable
    assert here.physical is None or 1 <= here.physical <= here.schedulable

"""The settings that are tried, and those that are not and why, by machine and recording: in a golden text."""

from tests.facts.kit import Told
from tests.trial.kit import *
from tfdoctor.trial import settings as tried_settings
from tfdoctor.trial.settings import Machine as Here

CPU, GPU = ("/device:CPU:0",), ("/device:CPU:0", "/device:GPU:0")
INTRA = "TF_NUM_INTRAOP_THREADS"
XLA, ONEDNN, MODE = "TF_XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS", "TF_GPU_THREAD_MODE"


def machine(cores: int = 8, physical: int | None = 4, usable: int = 8, *flags: str) -> Here:
    return Here(cores, physical, usable, HostMachine(cpu_flags=flags))


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what the machine of the test has."""
    for name in (XLA, "TF_NUM_INTEROP_THREADS", INTRA, ONEDNN, MODE, "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(tried_settings, "_tcmalloc", lambda: "")


ANY, VNNI, AVX2 = machine(), machine(8, 4, 8, "avx512_vnni"), machine(8, 4, 8, "avx2")


def about(
    what: str, here: Here = ANY, environment: Mapping[str, str] | None = None, **program: Any
) -> dict[str, object]:
    """Return what each setting with this in its name sets, and why others are not tried."""
    run = {"devices": CPU, "jit_compile": False, **program.pop("run", {})}
    record = read(ProgramRecord, {"run": run, **program}, [])
    recording = Recording(None, recorded(Path(), []).manifest, (), record, (), ())
    command = RecordedProgram(("python",), Path(), Kind.SCRIPT, environment or {})
    tried, useless = tried_settings.of_recording(recording, command, here)
    sets: dict[str, object] = {one.name: {**one.environment, **one.runner} for one in tried}
    sets |= {f"{one.name}, not tried": one.why for one in useless}
    return {name: told for name, told in sets.items() if what in name}


FED: dict[str, Any] = {"datasets": [{"id": 3, "class": "BatchDataset", "options": {}}], "feeds": 3}
OWN_POOL = {"id": 0, "class": "BatchDataset", "options": {"threading.private_threadpool_size": 3}}
told = Told()
rows = {
    # Numbers of threads that differ from the default, which may be that of the environment:
    "8 cores of 4 physical ones": ("intra-op",),
    "8 cores, between operations": ("inter-op",),
    "a quota of a container": ("inter-op", machine(64, 64, 6)),
    "one core": ("intra-op", machine(1, 1, 1)),
    "a number in the environment": ("intra-op", machine(8, 8, 8), {INTRA: "1"}),
    # A pool of threads needs a pipeline:
    "no pipeline": ("tf.data",),
    # XLA and oneDNN are tried the other way round:
    "XLA in the environment": ("XLA", ANY, {XLA: "--tf_xla_auto_jit=2 --x"}),
    "other flags of XLA": ("XLA", ANY, {XLA: "--x"}),
    "VNNI": ("oneDNN", VNNI),
    "AVX2": ("oneDNN", AVX2),
    "AVX2, and oneDNN is on": ("oneDNN", AVX2, {ONEDNN: "1"}),
    "VNNI, and oneDNN is off": ("oneDNN", VNNI, {ONEDNN: "0"}),
    "no GPU": ("GPU",),
    "no tcmalloc": ("tcmalloc",),
}
told[about] = rows
told.add("the program sets the threads", partial(about, "intra-op", run={"intra_op_threads": 2}))
told.add("threads beside a GPU", partial(about, "intra-op", run={"devices": GPU}))
told.add("a pipeline", partial(about, "tf.data", machine(8, 4, 6), **FED))
told.add("the program sets a pool", partial(about, "tf.data", datasets=[OWN_POOL], feeds=0))
for jit in ({"jit_compile": True}, {"jit_compile": None}, {"run_eagerly": True}):
    told.add(f"compiled: {jit}", partial(about, "XLA", run=jit))
told.add("oneDNN beside a GPU", partial(about, "oneDNN", VNNI, run={"devices": GPU}))
told.add("a GPU", partial(about, "GPU", run={"devices": GPU}))
told.add("a GPU whose threads are set", partial(about, "GPU", ANY, {MODE: "x"}, run={"devices": GPU}))
test_settings = told.test("settings")


def test_other_processors_have_no_onednn_to_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    ((name, why),) = about("oneDNN").items()
    assert (name, "aarch64" in str(why)) == ("oneDNN, not tried", True)


def test_tcmalloc_is_loaded_beside_what_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    library = "/usr/lib/libtcmalloc.so.4"
    monkeypatch.setattr(tried_settings, "_tcmalloc", lambda: library)
    loaded = {"LD_PRELOAD": f"{library}:/lib/other.so"}
    assert about("tcmalloc", ANY, {"LD_PRELOAD": "/lib/other.so"}) == {"tcmalloc": loaded}
    assert "already" in str(about("tcmalloc", ANY, {"LD_PRELOAD": library})["tcmalloc, not tried"])


def test_this_machine_can_be_described() -> None:
    here = Here.this()
    assert 1 <= here.usable <= here.schedulable
    assert here.physical is None or 1 <= here.physical <= here.schedulable

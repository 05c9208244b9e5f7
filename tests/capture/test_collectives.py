"""Jobs with collectives are traced without the crash of TensorFlow's profiler; nothing starts after the end."""

from tests.capture.kit import *
from tests.capture.windows import make

collectives: Any = agent.load("window.collectives")

ENTRY = """
import ctypes, sys
import tensorflow as tf
from tests.capture import agent
collectives = agent.load("window.collectives")
collectives.present = lambda: True
unnumbered, slot = collectives.Unnumbered(), collectives._slot()
before = collectives._read(slot)
unnumbered.begin()
during = collectives._read(slot)
assert ctypes.CFUNCTYPE(ctypes.c_int64)(during)() == 0, "an activity has a number"
unnumbered.end()
assert collectives._read(slot) == before != during
unnumbered.end()
assert collectives._read(slot) == before
"""


def devices(*kinds: str, server: object = None) -> SimpleNamespace:
    """Return TensorFlow's module of contexts with such devices."""
    devices = [SimpleNamespace(device_type=kind) for kind in kinds]
    context = SimpleNamespace(_collective_ops_server_def=server, _logical_devices=devices)
    return SimpleNamespace(_context=context)


@pytest.mark.parametrize(
    ("module", "present"),
    [
        (None, False),
        (SimpleNamespace(_context=None), False),
        (devices("CPU"), False),
        (devices("CPU", "GPU"), False),
        (devices("CPU", "GPU", "GPU"), True),
        (devices("CPU", server=object()), True),
    ],
)
def test_collectives_are_expected_between_workers_and_between_equal_devices(
    module: object, *, present: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, collectives.CONTEXT, module)
    assert collectives.present() == present


def test_a_trace_that_could_crash_the_run_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, collectives.CONTEXT, devices("CPU", "CPU"))
    monkeypatch.setattr(collectives, "LIBRARY", "no such library")
    window = make(tmp_path, monkeypatch)
    window.open_for(None, 1.0)
    (missing,) = window.log.state["missing"]
    assert (missing["what"], window.profiler.running()) == ("trace", False)
    assert missing["why"].startswith("TensorFlow's profiler can crash a job with collectives")
    assert missing["why"].endswith("profile a single worker")


@pytest.mark.tensorflow
def test_activities_have_no_number_while_a_trace_is_open() -> None:
    root = str(Path(__file__).parents[2])
    env = environment(PYTHONPATH=root)
    done = subprocess.run([sys.executable, "-c", ENTRY], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_window_opens_once_the_run_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make(tmp_path, monkeypatch)
    program = SimpleNamespace(end=lambda: None)
    installed = SimpleNamespace(window=window, log=window.log, program=program)
    agent.load("hooks.ends").finish(installed)
    window.open_for(None, 1.0)
    assert window.state == "done"
    assert window.capture is None


def test_an_interrupted_start_brings_the_function_back(monkeypatch: pytest.MonkeyPatch) -> None:
    captures: Any = agent.load("window.captures")
    monkeypatch.setattr(captures.tensorflow_api, "trace_class", lambda: None)
    calls: list[str] = []
    unnumbered = SimpleNamespace(begin=lambda: calls.append("begin"), end=lambda: calls.append("end"))
    monkeypatch.setattr(captures.collectives, "Unnumbered", lambda: unnumbered)

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    api = SimpleNamespace(running=lambda: False, start=interrupted)
    with pytest.raises(KeyboardInterrupt):
        captures.Capture(api, "folder", 0, 10).profile()
    assert calls == ["begin", "end"]


def test_a_fork_during_a_window_brings_its_function_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make(tmp_path, monkeypatch)
    calls: list[str] = []
    window.capture = SimpleNamespace(unnumbered=SimpleNamespace(end=lambda: calls.append("end")))
    window.after_fork()
    assert calls == ["end"]
    assert window.capture is None

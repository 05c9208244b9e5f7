"""Jobs with collectives are traced without the crash of TensorFlow's profiler; nothing starts after the end."""

from tests.capture.kit import *

collectives: Any = agent.load("window.collectives")


def devices(*kinds: str, server: object = None) -> SimpleNamespace:
    """Return TensorFlow's module of contexts with such devices."""
    devices = [SimpleNamespace(device_type=kind) for kind in kinds]
    return SimpleNamespace(_context=SimpleNamespace(_collective_ops_server_def=server, _logical_devices=devices))


@cases(
    (None, False),
    (SimpleNamespace(_context=None), False),
    (devices("CPU"), False),
    (devices("CPU", "GPU"), False),
    (devices("CPU", "GPU", "GPU"), True),
    (devices("CPU", server=object()), True),
)
def test_they_are_expected_of_workers_and_of_equal_devices(module: Any, present: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, collectives.CONTEXT, module)
    assert collectives.present() == present


def test_a_trace_that_could_crash_the_run_is_not_begun(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, collectives.CONTEXT, devices("CPU", "CPU"))
    monkeypatch.setattr(collectives, "LIBRARY", "no such library")
    window.open_for(None, 1.0)
    (missing,) = window.log.state["missing"]
    assert (missing["what"], window.profiler.running()) == ("trace", False)
    assert missing["why"].startswith("TensorFlow's profiler can crash a job with collectives")
    assert missing["why"].endswith("profile a single worker")


def test_no_window_opens_once_the_run_has_ended(window: Any) -> None:
    program = SimpleNamespace(end=lambda: None)
    agent.load("hooks.ends").finish(SimpleNamespace(window=window, log=window.log, program=program))
    window.open_for(None, 1.0)
    assert (window.state, window.capture) == ("done", None)


def test_an_interrupted_start_brings_the_function_back(monkeypatch: pytest.MonkeyPatch) -> None:
    captures: Any = agent.load("window.captures")
    monkeypatch.setattr(captures.tensorflow_api, "of_tensorflow", lambda _: SimpleNamespace(Trace=None))
    calls: list[str] = []
    unnumbered = SimpleNamespace(begin=lambda: calls.append("begin"), end=lambda: calls.append("end"))
    monkeypatch.setattr(captures.collectives, "Unnumbered", lambda: unnumbered)

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    api = SimpleNamespace(running=lambda: False, start=interrupted)
    with pytest.raises(KeyboardInterrupt):
        captures.Capture(api, "folder", 0, 10).profile()
    assert calls == ["begin", "end"]


def test_a_fork_during_a_window_brings_its_function_back(window: Any) -> None:
    calls: list[str] = []
    window.capture = SimpleNamespace(unnumbered=SimpleNamespace(end=lambda: calls.append("end")))
    window.after_fork()
    assert (calls, window.capture) == (["end"], None)

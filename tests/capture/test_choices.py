"""The lines that choose strategies, threads, aids for debugging and rates of zero."""

from tests.capture.kit import *


@pytest.fixture
def registry(log: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    eager: Any = {"executing_eagerly": lambda: True}
    for name, part in {"": {"__file__": "/tf/__init__.py"}, ".python.eager.context": eager}.items():
        monkeypatch.setitem(sys.modules, f"tensorflow{name}", SimpleNamespace(**part))
    return agent.load("program.registry").Registry(log)


def patched(registry: Any, module: str, **names: Any) -> Any:
    """Return a module of TensorFlow of whose calls the registry hears."""
    stream, made = agent.load("stream").Stream(registry.log), SimpleNamespace(__name__=module, **names)
    agent.load("program.registry").listen(stream, registry)
    for hook in stream.hooks()[module]:
        hook(made)
    return made


def on(registry: Any) -> list[str]:
    assert registry.log.errors == []
    return [entry["aid"] for entry in registry.choices.debugging()]


def numerics(registry: Any) -> Any:
    names: Any = {"enable_check_numerics": lambda *_: "on", "disable_check_numerics": lambda: "off"}
    kind = type("CheckNumericsCallback", (), {"callback": lambda _, value: value + 1})
    module = "tensorflow.python.debug.lib.check_numerics_callback"
    return patched(registry, module, CheckNumericsCallback=kind, **names)


def test_an_aid_is_on_from_its_call_until_it_is_switched_off(registry: Any) -> None:
    checks, eager = numerics(registry), "tensorflow.python.eager.polymorphic_function.eager_function_run"
    functions = patched(registry, eager, run_functions_eagerly=lambda run_eagerly: run_eagerly)
    data = patched(registry, "tensorflow.python.data.ops.debug_mode", enable_debug_mode=lambda: "debug")
    names: Any = {"enable_op_determinism": lambda: "same", "disable_op_determinism": lambda: "any"}
    names["set_intra_op_parallelism_threads"] = lambda number: number
    config = patched(registry, "tensorflow.python.framework.config", **names)
    assert on(registry) == []
    assert (checks.enable_check_numerics(30), functions.run_functions_eagerly(run_eagerly=True)) == ("on", True)
    assert (data.enable_debug_mode(), config.enable_op_determinism()) == ("debug", "same")
    assert on(registry) == ["check_numerics", "functions_eagerly", "data_debug_mode", "op_determinism"]
    assert (config.disable_op_determinism(), checks.disable_check_numerics()) == ("any", "off")
    assert functions.run_functions_eagerly(run_eagerly=False) is False
    assert on(registry) == ["data_debug_mode"]
    assert config.set_intra_op_parallelism_threads(2) == 2
    assert registry.choices.threads[0] == __file__


def test_python_is_timed_in_the_window_alone(registry: Any) -> None:
    choices, check = registry.choices, numerics(registry).CheckNumericsCallback().callback
    assert (check(1), choices.checking_ns) == (2, 0)
    choices.timing = True
    assert check(2) == 3
    choices.timing = False
    spent = choices.checking_ns
    assert spent > 0
    check(3)
    assert choices.checking_ns == spent


REMOTE = [f"/job:worker/replica:0/task:{at}/device:CPU:0" for at in range(2)]
LOCAL = [f"/job:localhost/replica:0/task:0/device:GPU:{at}" for at in range(3)]


@cases(
    ({"CPU0": 2, "GPU0": 2, "GPU1": 0}, ["/device:CPU:0", "/device:CPU:1"], ["CPU0", "CPU0"]),
    ({"CPU0": 2, "GPU0": 2, "GPU1": 0}, LOCAL, ["GPU0", "GPU0", "GPU1"]),
    ({"CPU0": 0}, REMOTE, REMOTE),  # devices of other processes are their own
)
def test_logical_devices_are_numbered_over_the_physical_ones(devices: Any, names: Any, expected: Any) -> None:
    """The physical devices by name, each with a number of logical ones."""
    config = SimpleNamespace(
        get_visible_devices=lambda: [SimpleNamespace(name=name, device_type=name[:3]) for name in devices],
        get_logical_device_configuration=lambda device: [None] * devices[device.name] or None,
    )
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=names))
    assert agent.load("program.choices").homes(strategy, config) == expected

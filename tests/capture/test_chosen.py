"""The lines that choose strategies and threads, and where replicas compute."""

from types import SimpleNamespace
from typing import Any

from tests.capture import agent

homes = agent.load("program.chosen").homes


def config(**parts: int) -> Any:
    """Physical devices by name, each with a number of logical ones."""
    devices = [SimpleNamespace(name=name, device_type=name[:3]) for name in parts]
    return SimpleNamespace(
        get_visible_devices=lambda: devices,
        get_logical_device_configuration=lambda device: [None] * parts[device.name] or None,
    )


def strategy(*names: str) -> Any:
    return SimpleNamespace(extended=SimpleNamespace(worker_devices=names))


def test_logical_devices_are_numbered_over_the_physical_ones() -> None:
    two = config(CPU0=2, GPU0=2, GPU1=0)
    assert homes(strategy("/device:CPU:0", "/device:CPU:1"), two) == ["CPU0", "CPU0"]
    local = [f"/job:localhost/replica:0/task:0/device:GPU:{at}" for at in range(3)]
    assert homes(strategy(*local), two) == ["GPU0", "GPU0", "GPU1"]


def test_devices_of_other_processes_are_their_own() -> None:
    remote = [f"/job:worker/replica:0/task:{at}/device:CPU:0" for at in range(2)]
    assert homes(strategy(*remote), config(CPU0=0)) == remote

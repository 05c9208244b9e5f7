"""Which aids for debugging are on, and how long Python checks values."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture import agent


class Callback:
    """Stands for TensorFlow's."""

    def callback(self, value: int) -> int:
        return value + 1


@pytest.fixture
def aids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(__file__="/tf/__init__.py"))
    return agent.load("program.debugging").DebugAids(agent.load("process.journal").Journal(str(tmp_path)))


def modules(aids: Any) -> tuple[Any, Any, Any, Any]:
    debugging = agent.load("program.debugging")
    kind = type("Own", (Callback,), {"callback": Callback.callback})
    made = (
        SimpleNamespace(
            enable_check_numerics=lambda *_: "on", disable_check_numerics=lambda: "off", CheckNumericsCallback=kind
        ),
        SimpleNamespace(run_functions_eagerly=lambda run_eagerly: run_eagerly),
        SimpleNamespace(enable_debug_mode=lambda: "debug"),
        SimpleNamespace(enable_op_determinism=lambda: "same", disable_op_determinism=lambda: "any"),
    )
    for module, acts in zip(made, debugging.hooks(aids).values(), strict=True):
        for act in acts:
            act(module)
    return made


def named(aids: Any) -> list[str]:
    assert aids.log.errors == []
    return [entry["aid"] for entry in aids.describe()]


def test_an_aid_is_on_from_its_call_until_it_is_switched_off(aids: Any) -> None:
    numerics, functions, data, config = modules(aids)
    assert named(aids) == []
    assert numerics.enable_check_numerics(30) == "on"
    assert functions.run_functions_eagerly(run_eagerly=True) is True
    assert data.enable_debug_mode() == "debug"
    assert config.enable_op_determinism() == "same"
    assert named(aids) == ["check_numerics", "functions_eagerly", "data_debug_mode", "op_determinism"]
    assert config.disable_op_determinism() == "any"
    assert numerics.disable_check_numerics() == "off"
    assert functions.run_functions_eagerly(run_eagerly=False) is False
    assert named(aids) == ["data_debug_mode"]


def test_python_is_timed_in_the_window_alone(aids: Any) -> None:
    numerics, *_ = modules(aids)
    numerics.enable_check_numerics()
    check = numerics.CheckNumericsCallback().callback
    assert check(1) == 2
    assert aids.checking_ns == 0
    aids.begin()
    assert check(2) == 3
    aids.end()
    spent = aids.checking_ns
    assert spent > 0
    check(3)
    assert aids.checking_ns == spent

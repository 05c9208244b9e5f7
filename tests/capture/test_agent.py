"""The agent runs where tfdoctor itself might not: old Pythons, no packages, other people's names."""

import ast
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import tfdoctor.capture
from tests.capture import agent

FOLDER = Path(tfdoctor.capture.__file__).parent
FILES = sorted([*FOLDER.glob("agent/*.py"), *FOLDER.glob("site/*.py")])

LOADED_BY_TENSORFLOW = {
    "atexit", "collections", "functools", "gc", "glob", "gzip", "hashlib", "importlib", "json", "math", "os",
    "re", "shutil", "sys", "threading", "time", "weakref",
}  # fmt: skip
"""Standard modules that a script with TensorFlow has loaded anyway: a user's file of such a name
would have broken TensorFlow already."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_it_is_python_3_9_and_imports_nothing_of_note(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    at_once = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            at_once |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            at_once.add(str(node.module).split(".")[0])
    assert at_once <= LOADED_BY_TENSORFLOW
    later = {
        str(node.module).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 0
    }
    assert later <= LOADED_BY_TENSORFLOW | {"tensorflow"}


def test_hooks_act_after_the_import_and_leave_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "watched_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    log = agent.load("journal").Journal(str(tmp_path))

    def patch(module: object) -> None:
        module.value += 1  # type: ignore[attr-defined]

    def broken(_module: object) -> None:
        raise ValueError("broken hook")

    agent.load("imports").watch({"watched_module": [broken, patch]}, log)
    assert "watched_module" not in sys.modules
    module = __import__("watched_module")
    monkeypatch.delitem(sys.modules, "watched_module")
    assert module.value == 2
    assert type(module.__spec__.loader).__name__ == "SourceFileLoader"
    assert module.__loader__ is module.__spec__.loader
    assert log.errors == [{"where": "hook of watched_module", "error": "ValueError: broken hook"}]


def test_the_state_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    log = agent.load("journal").Journal(str(tmp_path))
    log.write()
    log.missing("trace", "gone")
    log.write()
    assert [path.name for path in tmp_path.iterdir()] == ["agent.json"]
    assert "gone" in (tmp_path / "agent.json").read_text()


def test_a_state_that_cannot_be_written_is_a_recorded_fault(tmp_path: Path) -> None:
    log = agent.load("journal").Journal(str(tmp_path / "missing"))
    log.write()
    assert log.errors[0]["where"] == "journal"


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("/home/ann/project/train.py", True),
        ("/home/ann/.venv/lib/python3.12/site-packages/keras/src/layers/layer.py", False),
        ("/usr/lib/python3/dist-packages/x.py", False),
        ("/usr/lib/python3.11/functools.py", False),
        ("<frozen importlib._bootstrap>", False),
        ("/tmp/__autograph_generated_file1.py", False),
        (str(FOLDER / "agent" / "steps.py"), False),
        ("/home/ann/python3.11/lib/train.py", True),
    ],
)
def test_whose_file_it_is(name: str, user: object) -> None:
    assert agent.load("stack").user_file(name) == (name if user else None)


@pytest.mark.parametrize(
    ("operation", "layer"),
    [
        ("model_1/dense_1/MatMul", "dense"),  # noted while tracing: the scope's number is no name
        ("gradient_tape/model_1/dense_1/MatMul/MatMul_1", "dense"),
        ("model_1/dense_1_1/MatMul", "dense_1"),
        ("grad/gradients/model_1/dense_1/while/cell_1/MatMul_grad/MatMul", "dense"),
        ("somewhere/conv/Conv2D", "conv"),  # by its name alone
        ("Adam/mul", None),
    ],
)
def test_operations_find_their_layer(operation: str, layer: str | None) -> None:
    conv = SimpleNamespace(name="conv", path="net/conv")
    layers = agent.load("layers").Layers([(lambda: conv, None)])
    scopes = {"model_1/dense_1": "dense", "model_1/dense_1_1": "dense_1"}
    assert layers.owner(scopes)(operation) == layer

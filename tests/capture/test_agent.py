"""The agent runs where tfdoctor itself might not: old Pythons, no packages, other people's names."""

import ast

import tfdoctor.capture
from tests.capture.kit import *
from tfdoctor.terms.kinds import StepSource

FOLDER = Path(tfdoctor.capture.__file__).parent
FILES = sorted([*FOLDER.glob("agent/**/*.py"), *FOLDER.glob("site/*.py")])

LOADED_BY_TENSORFLOW = {
    "_posixsubprocess", "_signal", "_thread", "array", "atexit", "bisect", "builtins", "collections", "contextlib",
    "ctypes", "dis", "enum", "functools", "gc", "glob", "gzip", "hashlib", "importlib", "io", "itertools", "json",
    "math", "os", "random", "re", "runpy", "shutil", "struct", "sys", "threading", "time", "types", "weakref",
}  # fmt: skip
"""Standard modules that a script with TensorFlow has loaded anyway: a user's file of such a name
would have broken TensorFlow already."""

WHEN_ASKED = {"_tfdoctor_children", "_tfdoctor_door", "ast", "mmap", "sitecustomize", "tensorflow"}
"""Modules that are imported inside functions: ours, the user's, and what few runs need."""

FOR_TYPES = "declared.py"
"""Never imported when the agent runs."""


class Runs(ast.NodeTransformer):
    """Leaves out of a module what only the type checker reads."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if for_types else self.generic_visit(node)


BY_PYTHON = {"_frozen_importlib_external", "_imp"}
"""Modules that every Python has loaded before anything else."""


def imported(tree: ast.AST) -> set[str]:
    """Return the packages that a module imports from outside its own, anywhere in it."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module).split(".")[0])
    return names - {"__future__"}


def defines(node: ast.AST) -> bool:
    """Say whether a statement only defines a function or a class: what that imports, comes later."""
    return isinstance(node, (ast.FunctionDef, ast.ClassDef))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_it_is_python_3_9_and_neither_its_imports_nor_its_types_cost_anything(path: Path) -> None:
    text = path.read_text()
    tree = Runs().visit(ast.parse(text, feature_version=(3, 9)))
    if path.name == "sitecustomize.py":  # any Python reads this: no annotations at all
        assert not any(getattr(node, "annotation", None) for node in ast.walk(ast.parse(text)))
    else:
        assert "from __future__ import annotations\n" in text or " -> " not in text
        assert ".declared import" not in ast.unparse(tree)
    if path.name != FOR_TYPES:
        at_once = set().union(*map(imported, (node for node in tree.body if not defines(node))))
        assert at_once <= LOADED_BY_TENSORFLOW | BY_PYTHON | {
            "_tfdoctor_children",
            "_tfdoctor_door",
            "sitecustomize",
        }
        assert imported(tree) <= LOADED_BY_TENSORFLOW | BY_PYTHON | WHEN_ASKED


def test_hooks_act_after_the_import_and_leave_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "watched_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    log = agent.load("process.journal").Journal(str(tmp_path))

    def patch(module: Any) -> None:
        module.value += 1

    def broken(_module: object) -> None:
        raise ValueError("broken hook")

    agent.load("process.imports").watch({"watched_module": [broken, patch]}, log)
    assert "watched_module" not in sys.modules
    module = __import__("watched_module")
    monkeypatch.delitem(sys.modules, "watched_module")
    assert module.value == 2
    assert module.__spec__ is not None
    assert type(module.__spec__.loader).__name__ == "SourceFileLoader"
    assert module.__loader__ is module.__spec__.loader
    assert log.errors == [{"where": "hook of watched_module", "error": "ValueError: broken hook"}]


def test_the_state_file_is_replaced_as_a_whole_and_a_fault_to_do_so_is_recorded(tmp_path: Path) -> None:
    log = agent.load("process.journal").Journal(str(tmp_path))
    log.write()
    log.missing("trace", "gone")
    log.write()
    assert [path.name for path in tmp_path.iterdir()] == ["agent.json"]
    assert "gone" in (tmp_path / "agent.json").read_text()
    log = agent.load("process.journal").Journal(str(tmp_path / "missing"))
    log.write()
    assert log.errors[0]["where"] == "journal"


def test_the_kinds_of_loops_are_those_that_facts_know() -> None:
    assert {kind.value for kind in agent.load("window.steps").StepKind} <= {kind.value for kind in StepSource}


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
        (str(FOLDER / "site" / "_tfdoctor_door.py"), False),
        ("/home/ann/python3.11/lib/train.py", True),
    ],
)
def test_whose_file_it_is(name: str, user: object) -> None:
    assert agent.load("process.stack").user_file(name) == (name if user else None)


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
    layers = agent.load("program.layers").Layers([(lambda: conv, None)])
    scopes = {"model_1/dense_1": "dense", "model_1/dense_1_1": "dense_1"}
    assert layers.owner(scopes)(operation) == layer

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

WHEN_ASKED = {"ast", "mmap", "tensorflow"}
"""Modules that are imported inside functions: the user's, and what few runs need."""

FOR_TYPES = "declared.py"
"""Never imported when the agent runs."""

BY_PYTHON = {"_frozen_importlib_external", "_imp"}
"""Modules that every Python has loaded before anything else."""

OWN = {"_tfdoctor_children", "_tfdoctor_door", "sitecustomize"}
KNOWN = LOADED_BY_TENSORFLOW | BY_PYTHON | OWN


class Runs(ast.NodeTransformer):
    """Leaves out of a module what only the type checker reads."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def imported(tree: ast.AST) -> set[str]:
    """Return the packages that a module imports from outside its own, anywhere in it."""
    nodes = list(ast.walk(tree))
    names = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    names += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
    return {name.split(".")[0] for name in names} - {"__future__"}


@each(*FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_it_is_python_3_9_and_neither_its_imports_nor_its_types_cost_anything(path: Path) -> None:
    text = path.read_text()
    tree = Runs().visit(ast.parse(text, feature_version=(3, 9)))
    if path.name == "sitecustomize.py":  # any Python reads this: no annotations at all
        assert not any(getattr(node, "annotation", None) for node in ast.walk(ast.parse(text)))
    else:
        assert "from __future__ import annotations\n" in text or " -> " not in text
        assert ".declared import" not in ast.unparse(tree)
    if path.name != FOR_TYPES:
        at_once = (node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef)))
        assert set().union(*map(imported, at_once)) <= KNOWN
        assert imported(tree) <= KNOWN | WHEN_ASKED


def test_hooks_act_after_the_import_and_leave_no_trace(log: Any, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "watched_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))

    def patch(module: Any) -> None:
        module.value += 1

    def broken(_module: object) -> None:
        raise ValueError("broken hook")

    agent.load("process.imports").watch({"watched_module": [broken, patch]}, log)
    assert "watched_module" not in sys.modules
    module = __import__("watched_module")
    monkeypatch.delitem(sys.modules, "watched_module")
    assert module.value == 2
    loader = sure(module.__spec__).loader
    assert (type(loader).__name__, module.__loader__) == ("SourceFileLoader", loader)
    assert log.errors == [{"where": "hook of watched_module", "error": "ValueError: broken hook"}]


def test_the_state_file_is_replaced_as_a_whole_and_a_fault_to_do_so_is_recorded(log: Any, tmp_path: Path) -> None:
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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the import path with an installed package, an installed module, and files of the user."""
    record = tmp_path / "plots-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text(
        'plots/__init__.py,sha256=x,1\n"plots/a,b.py",sha256=y,1\n../../bin/plots,,\n'
        "single.py,,\nplots-1.0.dist-info/RECORD,,\n"
    )
    (tmp_path / "broken-1.0.dist-info").mkdir()  # without a list of its files
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "nowhere"), str(tmp_path)])
    return tmp_path


@cases(
    ("/home/ann/project/train.py", True),
    ("/home/ann/.venv/lib/python3.12/site-packages/keras/src/layers/layer.py", False),
    ("/usr/lib/python3/dist-packages/x.py", False),
    ("/usr/lib/python3.11/functools.py", False),
    ("<frozen importlib._bootstrap>", False),
    ("/tmp/__autograph_generated_file1.py", False),
    (str(FOLDER / "agent" / "steps.py"), False),
    (str(FOLDER / "site" / "_tfdoctor_door.py"), False),
    ("/home/ann/python3.11/lib/train.py", True),
    # Packages that were installed beside the script: what an installer lists is no file of the user.
    *(("plots/axes/lines.py", False), ("single.py", False), ("train.py", True), ("models/plots.py", True)),
    *(("plotsown/lines.py", True), ("broken/lines.py", True)),
)
def test_whose_file_it_is(name: str, user: object, folder: Path) -> None:
    path = name if name.startswith(("/", "<")) else str(folder / name)
    assert agent.load("process.stack").user_file(path) == (path if user else None)


def test_a_folder_that_is_not_imported_from_has_only_files_of_the_user(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert not agent.load("process.stack").is_installed(str(folder / "single.py"))


def test_functions_of_one_shape_are_two_places(tmp_path: Path) -> None:
    """As two training functions in one file: they were one loop."""
    names: dict[str, Any] = {"stack": agent.load("process.stack")}
    source = "def pretrain(): return stack.way_here()\ndef train(): return stack.way_here()\n"
    exec(compile(source, str(tmp_path / "train.py"), "exec"), names)
    first, again, other = names["pretrain"](), names["pretrain"](), names["train"]()
    assert (first[0], first[0] != other[0]) == (again[0], True)


@cases(
    ("model_1/dense_1/MatMul", "dense"),  # noted while tracing: the scope's number is no name
    ("gradient_tape/model_1/dense_1/MatMul/MatMul_1", "dense"),
    ("model_1/dense_1_1/MatMul", "dense_1"),
    ("grad/gradients/model_1/dense_1/while/cell_1/MatMul_grad/MatMul", "dense"),
    ("somewhere/conv/Conv2D", "conv"),  # by its name alone
    ("Adam/mul", None),
)
def test_operations_find_their_layer(operation: str, layer: str | None) -> None:
    conv = SimpleNamespace(name="conv", path="net/conv")
    layers = agent.load("program.layers").Layers([(lambda: conv, None)])
    scopes = {"model_1/dense_1": "dense", "model_1/dense_1_1": "dense_1"}
    assert layers.owner(scopes)(operation) == layer

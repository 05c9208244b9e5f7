"""Shows what the tests would catch: the share of small faults, put into the source one at a time, that fail them.

    python -m scripts.mutants --files 'src/tfdoctor/facts/**' --sample 50 --tests tests/facts
    python -m scripts.mutants map --out map.json                       which tests reach which lines: a whole run
    python -m scripts.mutants --sample 300 --map map.json --out a.jsonl   a fault, and the tests that reach it
    python -m scripts.mutants --again a.jsonl --map new.json --out b.jsonl   the same faults, in a later tree

Nothing is written to the tree (``--root``): it is copied with its environment, so that programs and processes of
the user find the copy. A fault is known by the text of its line and by what is changed there; where a line is gone,
it is told apart. Results are appended to ``--out`` as they come, and what is there already is not run again.
"""

import argparse
import ast
import base64
import bisect
import itertools
import json
import marshal
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

FIRST_S, FACTOR = 60, 4  # what a run may take: some time to begin, and this many times what its tests took
DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
BODIES = ("body", "orelse", "finalbody")

PAIRS = [("<", "<="), (">", ">="), ("==", "!="), ("is", "is not"), ("in", "not in"), ("and", "or"), ("+", "-")]
PAIRS += [("*", "/"), ("|", "&")]
INSTEAD = {"//": "/", "%": "*", **dict(PAIRS), **{new: old for old, new in PAIRS}}
"""What is put in the place of an operator."""


class Fault(NamedTuple):
    """A change of one place of one file: characters ``start`` to ``end`` become ``new``."""

    file: str
    line: int
    text: str  # of the line, without the blanks around it
    change: str
    nth: int  # of the same changes of the same text in the file
    start: int
    end: int
    new: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What it is known by in a later tree."""
        return self.file, self.text, self.change, self.nth


def _sign(operator: ast.AST) -> str:
    a, b = ast.Name("a"), ast.Name("b")
    match operator:
        case ast.cmpop():
            between: ast.expr = ast.Compare(a, [operator], [b])
        case ast.boolop():
            between = ast.BoolOp(operator, [a, b])
        case ast.operator():
            between = ast.BinOp(a, operator, b)
        case _:
            raise TypeError(operator)
    return ast.unparse(between)[2:-2]


class _File:
    """A source, for what its nodes could be changed to."""

    def __init__(self, source: str) -> None:
        self.source, self.lines = source, source.splitlines(keepends=True)
        self.starts = [0, *itertools.accumulate(map(len, self.lines))]

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())  # columns are of bytes

    def span(self, node: Any) -> tuple[int, int]:  # noqa: ANN401  # expressions and statements have a place
        """Return where a node begins and ends."""
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def swapped(self, operator: ast.AST, left: ast.AST, right: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        """Return another operator between two expressions."""
        old = _sign(operator)
        start, end = self.span(left)[1], self.span(right)[0]
        word = r"\s+".join(map(re.escape, old.split()))
        if old in INSTEAD and (found := re.search(rf"(?<!\w){word}(?!\w)", self.source[start:end])):
            new = INSTEAD[old]
            yield f"{old} -> {new}", start + found.start(), start + found.end(), new

    def negated(self, test: ast.expr) -> Iterator[tuple[str, int, int, str]]:
        """Return the opposite of a condition, unless dropping its `not` is that."""
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            start, end = self.span(test)
            yield "negated", start, end, f"not ({self.source[start:end]})"

    def changes(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:  # noqa: C901, PLR0912, PLR0915  # one case a kind of node
        """Return what a node itself could be changed to."""
        match node:
            case ast.Compare():
                for operator, left, right in zip(
                    node.ops, [node.left, *node.comparators], node.comparators, strict=False
                ):
                    yield from self.swapped(operator, left, right)
            case ast.BoolOp():
                for left, right in itertools.pairwise(node.values):
                    yield from self.swapped(node.op, left, right)
            case ast.BinOp() if not _of_types_or_texts(node):
                yield from self.swapped(node.op, node.left, node.right)
            case ast.UnaryOp(ast.Not(), operand):
                inside, end = self.span(operand)
                yield "not dropped", *self.span(node), f"({self.source[inside:end]})"
            case ast.Constant(bool(value)):
                yield f"{value} -> {not value}", *self.span(node), str(not value)
            case ast.Constant(int(value)):
                step = 1 if (node.lineno + node.col_offset) % 2 or value == 0 else -1
                yield "constant +-1", *self.span(node), str(value + step)
            case ast.Constant(float(value)):
                yield "constant changed", *self.span(node), repr(value * 2 or 1.0)
            case ast.If() | ast.While() | ast.IfExp():
                yield from self.negated(node.test)
            case ast.comprehension():
                for test in node.ifs:
                    yield from self.negated(test)
            case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
                yield "returned None", *self.span(value), "None"
            case ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
                yield "dropped", *self.span(node), "pass"
            case ast.Expr(value) if not isinstance(value, ast.Constant):
                yield "dropped", *self.span(node), "pass"
            case ast.Assign(targets) if any(isinstance(one, ast.Attribute | ast.Subscript) for one in targets):
                yield "dropped", *self.span(node), "pass"  # a name that were not set would fail at once
            case ast.arguments():
                for default in (*node.defaults, *node.kw_defaults):
                    if isinstance(default, ast.Constant) and isinstance(default.value, str):
                        yield "default changed", *self.span(default), repr("" if default.value else "changed")
            case _:
                pass


def _of_types_or_texts(node: ast.BinOp) -> bool:
    """Tell whether an operator is one of types or texts: another one fails at once."""
    texts = any(isinstance(one, ast.JoinedStr) or _is(one, str | bytes) for one in ast.walk(node))
    return texts or bool(isinstance(node.op, ast.BitOr) and re.search(r"\b[A-Z]|\b(str|int)\b", ast.unparse(node)))


def _is(node: ast.AST, kind: Any) -> bool:  # noqa: ANN401  # a type, or several
    return isinstance(node, ast.Constant) and isinstance(node.value, kind)


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Return what runs: no annotations, no texts with values inside, nothing that is there for type checkers."""
    yield node
    left_out = {"annotation", "returns"} | ({"values"} if isinstance(node, ast.JoinedStr) else set())
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            if isinstance(child, ast.AST) and name not in left_out and not typing:
                yield from _nodes(child)


def faults(file: str, source: str) -> list[Fault]:
    """Return every fault that can be put into a file."""
    whole, seen, found = _File(source), Counter[tuple[str, str]](), []
    for node in _nodes(ast.parse(source)):
        for change, start, end, new in whole.changes(node):
            line = bisect.bisect_right(whole.starts, start)
            text = whole.lines[line - 1].strip()
            found.append(Fault(file, line, text, change, seen[text, change], start, end, new))
            seen[text, change] += 1
    return found


def sources(root: Path, globs: list[str]) -> list[str]:
    """Return the Python files of a tree that match, by name."""
    found = {path for glob in globs for path in root.glob(glob)}
    files = {file for path in found for file in (path.rglob("*.py") if path.is_dir() else [path])}
    return sorted(str(file.relative_to(root)) for file in files if file.suffix == ".py")


def sample(every: list[Fault], count: int, seed: int) -> list[Fault]:
    """Draw lines, and of each line one of its faults: so a file has as many as it has lines."""
    lines = defaultdict(list)
    for fault in every:
        lines[fault.file, fault.line].append(fault)
    chance = random.Random(seed)  # noqa: S311  # a sample, not a secret
    drawn = chance.sample(sorted(lines), min(count, len(lines)))
    return [chance.choice(lines[place]) for place in drawn]


def again(every: list[Fault], known: list[dict[str, Any]]) -> Iterator[tuple[Fault | None, dict[str, Any]]]:
    """Yield another tree's faults as they are here: in another file, or None where the line is gone."""
    here = {fault.key: fault for fault in every}
    elsewhere = defaultdict(list)
    for fault in every:
        elsewhere[fault.text, fault.change, fault.nth].append(fault)
    for one in known:
        key = (one["file"], one["text"], one["change"], one["nth"])
        others = elsewhere[key[1:]]
        yield here.get(key) or (others[0] if len(others) == 1 else None), one


# A copy of the tree, with its environment.


def copied(root: Path, to: Path) -> None:
    """Copy what git has or could have of a tree, and its environment by links, whose programs find the copy."""
    words = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"]
    names = [name for name in run(words, root).splitlines() if (root / name).is_file()]
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, to / name)
    author = ["-c", "user.name=copy", "-c", "user.email=copy@localhost"]
    for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "The copy"]):
        run(["git", *words], to)
    run(["cp", "-al", str(root / ".venv"), str(to / ".venv")], to)
    site = next((to / ".venv").glob("lib/python3*/site-packages"))
    for path in (*(to / ".venv" / "bin").iterdir(), *site.glob("*.pth"), to / ".venv" / "pyvenv.cfg"):
        text = path.read_bytes()[:4096] if path.is_file() and not path.is_symlink() else b""
        if str(root).encode() in text:
            whole, mode = path.read_bytes(), path.stat().st_mode
            path.unlink()  # it is a link: its other name is the tree's
            path.write_bytes(whole.replace(str(root).encode(), str(to).encode()))
            path.chmod(mode)


def run(words: list[str], folder: Path) -> str:
    """Run a command that has to succeed."""
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout  # noqa: S603


def pytest(tree: Path, words: list[str], most_s: float) -> tuple[int | None, str]:
    """Run tests in a copy: how they ended (None: they took too long), and what they said."""
    program = [str(tree / ".venv/bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=no"]
    hidden = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS"}
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    with tempfile.TemporaryFile("w+") as said:
        nothing, alone = subprocess.DEVNULL, True  # its group has a number, by which all of it is ended
        started = subprocess.Popen(  # noqa: S603
            [*program, *words],
            cwd=tree,
            env=variables,
            stdin=nothing,
            stdout=said,
            stderr=said,
            start_new_session=alone,
        )
        try:
            code: int | None = started.wait(most_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
        said.seek(0)
        return code, said.read()


# Which tests reach which lines. The copy's compiled files note each block of statements that is begun, its sources
# stay as they are.

PROBE = '''
import builtins, os
FOLDER = {folder!r}
hits = set()

def child(block, test=os.environ.get("PYTEST_CURRENT_TEST", "")):
    """In a process that a test started: note it at once, for the process may be killed."""
    if block not in hits:
        hits.add(block)
        out = os.open(f"{{FOLDER}}/child-{{os.getpid()}}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(out, f"{{block}} {{test.rpartition(' ')[0]}}\\n".encode())
        os.close(out)

def begin_child():
    hits.clear()
    child.__defaults__ = (os.environ.get("PYTEST_CURRENT_TEST", ""),)
    builtins._probe_ = child

builtins._probe_ = child
spent = [0.0]

def put(**row):
    import base64, json, zlib
    bits = 0
    for block in hits:
        bits |= 1 << block
    hits.clear()
    now = sum(os.times()[:4])  # of the processors: the same on a busy machine
    row["seconds"], spent[0] = now - spent[0], now
    row["hits"] = base64.b64encode(zlib.compress(bits.to_bytes(bits.bit_length() // 8 + 1, "little"))).decode()
    with open(f"{{FOLDER}}/main-{{os.getpid()}}", "a") as out:
        print(json.dumps(row), file=out)

def pytest_configure(config):
    builtins._probe_ = hits.add
    os.register_at_fork(after_in_child=begin_child)

def pytest_collectreport(report):
    put(node=report.nodeid, phase="collect", outcome=report.outcome)

def pytest_runtest_logreport(report):
    if not hasattr(report, "node"):  # in the process that runs it
        put(node=report.nodeid, phase=report.when, outcome=report.outcome)
'''


class Block(NamedTuple):
    """Statements that run one after the other, or a whole function, whose body is the first of them."""

    file: str
    start: int
    end: int


def blocks(file: str, tree: ast.Module) -> Iterator[tuple[Block, list[ast.stmt]]]:
    """Return the blocks inside of functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Block(file, node.lineno, node.end_lineno or 0), node.body
            for inside in ast.walk(node):
                lists = [getattr(inside, name, None) for name in BODIES]
                for body in lists if not isinstance(inside, (*DEFS, ast.Lambda, ast.IfExp)) else []:
                    if isinstance(body, list) and body:
                        yield Block(file, body[0].lineno, body[-1].end_lineno or 0), body


def instrument(tree: Path, folder: Path) -> list[Block]:
    """Compile the sources of a copy so that each block notes that it is begun; return the blocks."""
    site = next((tree / ".venv").glob("lib/python3*/site-packages"))
    (site / "_mutants_probe.py").write_text(PROBE.format(folder=str(folder)))
    found: list[Block] = []
    for file in sources(tree, ["src"]):
        path = tree / file
        module = ast.parse(path.read_bytes())
        known: dict[Block, None] = {}
        for block, body in [*blocks(file, module)]:
            if block in known:
                continue
            known[block] = None
            call = ast.parse(f"_probe_({len(found)})").body[0]
            for node in ast.walk(call):
                ast.copy_location(node, body[0])
            docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            body.insert(int(docstring), call)
            found.append(block)
        first = next((i for i, node in enumerate(module.body) if not prelude(node)), len(module.body))
        begin = "try: _probe_\nexcept NameError:\n try: import _mutants_probe\n except ImportError: _probe_ = id"
        module.body[first:first] = ast.parse(begin).body
        compiled = Path(cache_from_source(str(path)))
        compiled.parent.mkdir(exist_ok=True)
        code = marshal.dumps(compile(module, str(path), "exec"))
        compiled.write_bytes(MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + code)  # never checked: PEP 552
    return found


def prelude(node: ast.stmt) -> bool:
    """Tell whether nothing may come before a statement: a docstring, an import from the future."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return text or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def measure(root: Path, tests: list[str], out: Path, jobs: int) -> None:
    """Run tests once and add to the map which of them reach which blocks, and what they take."""
    folder = out.with_suffix(".hits").resolve()
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        tree, clean = Path(place, "tree"), Path(place, "clean")
        copied(root, tree)
        found = instrument(tree, folder)
        spread = ["-n", str(jobs), "--dist", "loadfile"] if jobs > 1 else []
        print(pytest(tree, ["-p", "_mutants_probe", *spread, *tests], most_s=10 * 3600)[1][-3000:])
        rows = [json.loads(line) for path in folder.glob("main-*") for line in path.read_text().splitlines()]
        children = [line.split(" ", 1) for path in folder.glob("child-*") for line in path.read_text().splitlines()]
        failed = {row["node"] for row in rows if row["outcome"] == "failed" and row["phase"] != "collect"}
        asked = json.loads((folder / "failed").read_text()) if (folder / "failed").exists() else {}
        if failed - {*asked}:
            copied(root, clean)
        asked |= {name: pytest(clean, [name], most_s=600)[0] != 0 for name in sorted(failed - {*asked})}
        (folder / "failed").write_text(json.dumps(asked))
        print("failed while they were watched (true: alone, too):", json.dumps(asked, indent=1))
        always = {name for name, alone in asked.items() if alone}
        out.write_text(json.dumps(joined(rows, children, always, found)))


def joined(
    rows: list[dict[str, Any]], children: list[list[str]], always: set[str], found: list[Block]
) -> dict[str, Any]:
    """Return the map: tests with their seconds, and the blocks with tests and files of tests that reach them."""
    tests: dict[str, float] = {}
    for row in rows:
        if row["phase"] != "collect" and row["node"] not in always:
            tests[row["node"]] = round(tests.get(row["node"], 0.0) + row["seconds"], 3)
    place = {name: index for index, name in enumerate(tests)}
    files = sorted({name.partition("::")[0] for name in tests})
    by_test: list[set[int]] = [set() for _ in found]
    by_file: list[set[int]] = [set() for _ in found]
    for row in rows:
        file = row["node"].partition("::")[0]
        for block in bits(row["hits"]):
            if row["phase"] in ("collect", "setup") and file in files:
                by_file[block].add(files.index(file))
            if row["node"] in place:
                by_test[block].add(place[row["node"]])
    for number, name in children:
        if name in place:
            by_test[int(number)].add(place[name])
    return {
        "tests": [*tests.items()],
        "files": files,
        "blocks": [
            [*block, sorted(one), sorted(two)] for block, one, two in zip(found, by_test, by_file, strict=True)
        ],
    }


def bits(text: str) -> Iterator[int]:
    """Return the places of a number's ones."""
    for index, byte in enumerate(zlib.decompress(base64.b64decode(text))):
        yield from (8 * index + bit for bit in range(8) if byte >> bit & 1) if byte else ()


class Map:
    """Which tests to run for a fault."""

    def __init__(self, root: Path, path: Path, most_s: float) -> None:
        self.most_s = most_s
        known = json.loads(path.read_text())
        self.tests: list[tuple[str, float]] = [(name, seconds) for name, seconds in known["tests"]]
        self.files: list[str] = known["files"]
        self.by_file = defaultdict(list)
        for index, (name, _) in enumerate(self.tests):
            self.by_file[name.partition("::")[0]].append(index)
        self.blocks = defaultdict(list)
        for file, start, end, tests, files in known["blocks"]:
            self.blocks[file].append((Block(file, start, end), tests, files))
        self.texts = {file: (root / file).read_text("utf-8") for file in sources(root, ["src"])}

    def seconds(self, name: str) -> float:
        """Return what a test took."""
        return dict(self.tests).get(name, 0.0)

    def reached(self, fault: Fault) -> list[tuple[Block, list[int], list[int]]]:
        """Return the blocks that run what is changed: those around it, or those that name what it defines."""
        around = self.around(fault.file, fault.line)
        if around:
            return around
        name, stem = defined(self.texts[fault.file], fault.line), Path(fault.file).stem
        stem = Path(fault.file).parent.name if stem == "__init__" else stem
        told = re.compile(rf"\b{re.escape(name)}\b")
        found = []
        for file, text in self.texts.items() if name else ():
            if file == fault.file or (told.search(text) and stem in text):
                lines = [number for number, line in enumerate(text.splitlines(), 1) if told.search(line)]
                found += [block for line in lines for block in self.around(file, line)]
        return found or self.blocks[fault.file]

    def around(self, file: str, line: int) -> list[tuple[Block, list[int], list[int]]]:
        """Return the innermost block with a line, if any."""
        inside = [one for one in self.blocks[file] if one[0].start <= line <= one[0].end]
        return [min(inside, key=lambda one: one[0].end - one[0].start)] if inside else []

    def chosen(self, fault: Fault) -> tuple[list[str], float]:
        """Return tests that reach a fault, and their seconds: those of its own files first, then the cheapest."""
        reached = self.reached(fault)
        every = {test for _, tests, _ in reached for test in tests}
        every |= {test for _, _, files in reached for file in files for test in self.by_file[self.files[file]]}
        files = defaultdict(list)
        for test in sorted(every, key=lambda test: self.tests[test][1]):
            files[self.tests[test][0].partition("::")[0]].append(test)
        own = {part for part in Path(fault.file).with_suffix("").parts[2:] if part != "__init__"}
        last = Path(fault.file).parent.name if fault.file.endswith("__init__.py") else Path(fault.file).stem

        def order(file: str) -> tuple[int, float]:
            parts = {*Path(file).parts, Path(file).stem.removeprefix("test_")}
            return -2 * (last in parts) - len(own & parts), sum(self.tests[test][1] for test in files[file])

        names, left = [], self.most_s
        for file in sorted(files, key=order):
            for test in files[file]:
                name, seconds = self.tests[test]
                if seconds <= left:
                    names.append(name)
                    left -= seconds
        return names, self.most_s - left


def defined(text: str, line: int) -> str:
    """Return the name that the statement at a line of a module defines, or nothing."""
    for node in ast.parse(text).body:
        start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        if start <= line <= (node.end_lineno or 0):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            return getattr(node, "name", "") or (target.id if isinstance(target, ast.Name) else "")
    return ""


# The faults, one after the other in each copy.


class Trial:
    """Runs tests with a fault in a copy of the tree."""

    def __init__(self, root: Path, place: Path, jobs: int, tests: list[str], known: Map | None) -> None:
        self.tests, self.map = tests, known
        self.trees: SimpleQueue[Path] = SimpleQueue()
        for job in range(jobs):
            copied(root, place / str(job))
            self.trees.put(place / str(job))
        self.times = iter(range(10**9))  # so that each version of a file is newer than what was compiled of it

    def __call__(self, fault: Fault) -> dict[str, Any]:
        """Return what became of a fault."""
        row = {**fault._asdict()}
        tests, seconds = self.map.chosen(fault) if self.map else (self.tests, 600.0)
        if not tests:
            return {**row, "outcome": "unreached"}
        tree = self.trees.get()
        try:
            return {**row, **self.tried(tree, fault, tests, seconds)}
        finally:
            self.trees.put(tree)

    def tried(self, tree: Path, fault: Fault, tests: list[str], seconds: float) -> dict[str, Any]:
        """Put the fault into a file, run the tests, and take it out; ask a test that took long a second time."""
        path, listed = tree / fault.file, tree / ".git" / "tests"
        source = path.read_text("utf-8")
        self.write(path, source[: fault.start] + fault.new + source[fault.end :])
        code: int | None = 0
        said = ""
        own = [test for test in tests if test.startswith(tests[0].partition("::")[0])]
        try:
            for part in (own, tests[len(own) :]):  # most faults fail a test of their own file
                if part and code == 0:
                    listed.write_text("\n".join(part))
                    code, said = pytest(tree, ["-x", f"@{listed}"], FIRST_S + FACTOR * seconds)
        finally:
            self.write(path, source)
        outcome = {0: "survived", None: "timeout"}.get(code, "killed")
        found = re.search(r"^(?:FAILED|ERROR) (tests/\S+?\.py(?:::.+?)?)(?: - .*)?$", said, re.MULTILINE)
        killer = found[1] if found else said.strip().rpartition("\n")[2] if outcome == "killed" else ""
        if outcome == "killed" and found and (not self.map or self.map.seconds(killer) > 1):
            again, _ = pytest(tree, [killer], FIRST_S + FACTOR * seconds)
            outcome = outcome if again == 0 else "unclear"
        return {"outcome": outcome, "tests": len(tests), "seconds": round(seconds), "by": killer}

    def write(self, path: Path, text: str) -> None:
        """Write a source so that nothing compiled before stands for it."""
        path.write_text(text, "utf-8")
        os.utime(path, (1_900_000_000 + next(self.times),) * 2)


def summary(rows: list[dict[str, Any]]) -> str:
    """Return how many faults the tests caught."""
    counts = Counter(row["outcome"] for row in rows)
    clear, caught = sum(counts.values()) - counts["unclear"], counts["killed"] + counts["timeout"]
    return f"{caught} of {clear} are caught: {caught / max(clear, 1):.1%} ({dict(counts)})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", nargs="?", choices=["map", "try"], default="try")
    parser.add_argument("--root", type=Path, default=Path(), help="the tree; default: the working directory")
    parser.add_argument("--files", nargs="+", default=["src"], help="globs of sources to put faults into")
    parser.add_argument("--sample", type=int, default=100, help="how many faults (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=46)
    parser.add_argument("--skip", nargs="+", default=[], help="beginnings of files whose faults of the sample wait")
    parser.add_argument("--retry", nargs="+", default=[], help="outcomes in --out that are tried again: survived …")
    parser.add_argument("--again", type=Path, help="results of another tree, whose faults are tried")
    parser.add_argument(
        "--tests", nargs="+", default=["tests"], help="what pytest runs for each fault, or for the map"
    )
    parser.add_argument("--map", type=Path, help="the map: run the tests that reach a fault, in place of --tests")
    parser.add_argument(
        "--most", type=float, default=120.0, help="seconds of tests for a fault (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that are used at a time")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    return parser.parse_args()


def main() -> None:
    """Make a map, or try a sample."""
    options = _options()
    root = options.root.resolve()
    if options.what == "map":
        measure(root, options.tests, options.out, options.jobs)
        return
    files = sources(root, ["src"] if options.again else options.files)
    every = [fault for file in files for fault in faults(file, (root / file).read_text("utf-8"))]
    if options.again:
        former = map(json.loads, options.again.read_text().splitlines())
        both = [*again(every, [*{(r["file"], r["text"], r["change"], r["nth"]): r for r in former}.values()])]
        drawn = [fault for fault, _ in both if fault]
        print(
            f"{len(both) - len(drawn)} of {len(both)} faults of the other tree are gone; of the same faults, there:"
        )
        print(summary([row for fault, row in both if fault]))
    else:
        drawn = sample(every, options.sample, options.seed)
    before = options.out.read_text().splitlines() if options.out.exists() else []
    rows = {(row["file"], row["text"], row["change"], row["nth"]): row for row in map(json.loads, before)}
    known = {key for key, row in rows.items() if row["outcome"] not in options.retry}
    left = [one for one in drawn if one.key not in known and not one.file.startswith((*options.skip,))]
    chosen = Map(root, options.map, options.most) if options.map else None
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as place,
        ThreadPoolExecutor(options.jobs) as pool,
        options.out.open("a") as out,
    ):
        trial = Trial(root, Path(place), options.jobs, options.tests, chosen)
        for fault, row in zip(left, pool.map(trial, left), strict=True):
            print(f"{row['outcome']:9} {row['file']}:{row['line']} {row['change']}: {row['text']}", flush=True)
            print(json.dumps(row), file=out, flush=True)
            rows[fault.key] = row
    print(summary([*rows.values()]))


if __name__ == "__main__":
    main()

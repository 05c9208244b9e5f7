"""What the source of a script that ran says: what makes its batches, and what the loops around training keep."""

import linecache
from typing import ClassVar

from tests.capture.kit import *
from tfdoctor.capture import sources
from tfdoctor.capture.sources.frames import At
from tfdoctor.capture.sources.makers import makers
from tfdoctor.recording import Recording
from tfdoctor.recording.files import Notes, run_log
from tfdoctor.recording.manifest import HostMachine, Manifest
from tfdoctor.recording.run_log import RUN_LOG, AssignedNumber, KeptStatement, RunLog
from tfdoctor.source_code.tree import SyntaxTree

loops_of = agent.load("run.loops")

EMPTY = "history = []"
LOOP = "for x in data:\n    loss, z = step(x)\n    "


def told(folder: Path, script: str, *, written: str | None = None) -> tuple[KeptStatement, ...]:
    """Return what is told of a user's script after it ran; another text may be in its file by then."""
    path = ran(folder / "train.py", script)
    path.write_text(script if written is None else written)
    os.utime(path, (1e9, 1e9))
    return account(folder).kept


def account(folder: Path, names: Mapping[str, str] | None = None) -> RunLog:
    """Return the account of a run that is over."""
    sources.tell(folder, names)
    log = run_log(folder, Notes())
    assert log is not None
    return log


def run(path: Path) -> None:
    """Run a user's script whose `step` trains, and whose models have a `fit`; write its calls that train."""
    noted = loops_of.TrainingCalls()

    def step(*values: object) -> tuple[object, object]:
        noted.add(caller())
        return values, values

    class Model:
        def fit(self, *_: object) -> "Model":
            noted.add(caller(), fits=True)
            return self

        history: ClassVar = {"loss": [0.5]}

    names = {"step": step, "Model": Model, "data": [1, 2, 3], "__name__": "__main__"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    own = [{**line, "frames": [at for at in line["frames"] if at[0] != __file__]} for line in noted.told]
    lines = [{"kind": "process", "started_unix_ns": int(time.time() * 1e9)}, *own]
    (path.parent / RUN_LOG).write_text("".join(json.dumps(line) + "\n" for line in lines))


def ran(path: Path, text: str) -> Path:
    path.write_text(text)
    run(path)
    return path


def caller(up: int = 2) -> Any:
    frame: Any = inspect.currentframe()
    for _ in range(up):
        frame = frame.f_back
    return frame


def found(folder: Path, script: str) -> list[str]:
    """Return what is told of the statements of a script: where, what each keeps, and in what."""
    return [
        f"line {one.at[1]}: {one.container} gets {one.value}, {one.what}{', each time' * one.each}"
        f"{', of a fit' * one.fits}"
        for one in told(folder, script)
    ]


def test_what_is_kept_and_what_only_seems_to_be(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """The file has the scripts as well; behind each, what is told of it."""
    known = Path(__file__).with_name("golden").joinpath("sources.txt").read_text().split("## ")[1:]
    cases = [re.sub(r"(?m)^» .*\n?", "", text).strip("\n").partition("\n") for text in known]
    told = [(name, script, *(f"» {one}" for one in found(tmp_path, script))) for name, _, script in cases]
    golden("sources.txt", "\n".join("## " + "".join(f"{line}\n" for line in lines) for lines in told))


def test_the_number_of_statements_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_TOLD", 7)
    many = "\n".join(f"{LOOP}history.append(loss)  # {number}" for number in range(10))
    assert len(told(tmp_path, f"{EMPTY}\n{many}")) == 7


@cases((900_000, 1), (1_000_000, 0))
def test_a_file_that_is_too_long_is_told(length: int, read: int, tmp_path: Path) -> None:
    """Trap: what somebody wrote by hand is read, however long it is."""
    kept = told(tmp_path, f"{SCRIPT}#{'-' * length}")
    log = run_log(tmp_path, Notes())
    assert (len(kept), len(sure(log).unread)) == (read, 1 - read)


SCRIPT = f"{EMPTY}\nfor x in data:\n    history.append(step(x))\n"


MAIN = f"def main():\n    {EMPTY}\n    for x in data:\n        history.append(step(x))\nmain()"


@each("", "def broken(:\n", "# coding: hex\n00\n", "x = 1\n" * 9, MAIN.replace("main", "other"))
def test_another_source_than_the_one_that_ran_says_nothing(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, MAIN)
    assert told(tmp_path, MAIN, written=text) == ()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)
    os.utime(path, (1e9, 1e9))


@each(lambda path: os.utime(path, (time.time() + 60,) * 2), pipe, ids=["edited since", "a pipe"])
def test_what_is_no_longer_the_file_that_ran_says_nothing(change: Callable[[Path], object], tmp_path: Path) -> None:
    change(ran(tmp_path / "train.py", SCRIPT))
    assert account(tmp_path).kept == ()


def test_an_expression_of_hundreds_of_parts_breaks_nothing(tmp_path: Path) -> None:
    long = " + ".join(["z"] * 900)
    script = f"{EMPTY}\n{LOOP}history.append(loss)\n    history.append({long} if x > 9 else 0)"
    assert len(told(tmp_path, script)) < 3


def test_a_link_and_another_encoding_are_read_as_python_does(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.py"
    target.write_bytes(f"# coding: latin-1\n# Größe\n{SCRIPT}".encode("latin-1"))
    path = ran(tmp_path / "train.py", f"# coding: latin-1\n# Groesse\n{SCRIPT}")
    path.unlink()
    os.utime(target, (1e9, 1e9))
    path.symlink_to(target)
    assert len(account(tmp_path).kept) == 1


def test_a_cell_of_a_notebook_is_found_by_its_own_name(tmp_path: Path) -> None:
    path = ran(tmp_path / "cell", SCRIPT)
    path.unlink()
    linecache.cache["<cell>"] = len(SCRIPT), None, SCRIPT.splitlines(keepends=True), "<cell>"
    assert len(account(tmp_path, {str(path): "<cell>"}).kept) == 1


HERE = HostMachine(os.uname().nodename)


def completed(folder: Path, manifest: Manifest, **changes: Any) -> RunLog:
    """Return the account of a run as a recording completes it, whose own is changed."""
    log = replace(account(folder), **changes)
    read = sources.completed(Recording(folder, manifest, (), None, (), (), run=log)).run
    assert read is not None
    return read


@cases(
    (Manifest(host=HERE), 1),
    (Manifest(host=HERE, finished=True), 0),
    (Manifest(host=HostMachine("other")), 0),
    (Manifest(host=HERE, finished=True, background=(7,)), 1),
)
def test_a_recording_that_tfdoctor_did_not_end_is_read_later(manifest: Manifest, read: int, tmp_path: Path) -> None:
    told(tmp_path, SCRIPT)
    log = completed(tmp_path, manifest, kept=(), makers=())
    assert (len(log.kept), len(log.makers)) == (read, read)


def test_what_an_older_recorder_read_in_the_process_stays(tmp_path: Path) -> None:
    """Trap: a killed run of before has statements, and none of the calls that they are found by now."""
    kept = told(tmp_path, SCRIPT)
    assert completed(tmp_path, Manifest(host=HERE), training=(), kept=kept).kept == kept != ()


def test_a_line_of_nested_scopes_belongs_to_the_innermost() -> None:
    source = SyntaxTree("def f():\n    for x in y:\n        def g():\n            step()\n        g()\n")
    inner, outer = At(source, 4), At(source, 5)
    assert ((inner.name, len(inner.loops)), (outer.name, len(outer.loops))) == (("g", 0), ("f", 1))


def test_a_call_that_trains_is_noted_once() -> None:
    noted, first = loops_of.TrainingCalls(), caller(1)
    for _ in range(3):
        noted.add(first)
        line = first.f_lineno - 1
    calls = [(one["frames"][0], one["fits"], one["direct"]) for one in noted.told]
    assert calls == [((__file__, line, first.f_code.co_name), False, True)]


def test_expressions_hold_no_statements_and_the_number_of_calls_is_bounded() -> None:
    noted = loops_of.TrainingCalls()
    for number in range(noted.MOST + 9):
        code = compile("def f(): return [note(_) for _ in [1]]\nf()", f"/home/u/{number}.py", "exec")
        exec(code, {"note": lambda _: noted.add(caller())})
    assert len(noted.told) == noted.MOST
    assert noted.told[-1]["frames"][:2] == [("/home/u/49.py", 1, "f"), ("/home/u/49.py", 2, "<module>")]


ROUNDS = """\
for epoch in range(3):
    for rows in order():
        batch = load(rows)
        batch = batch / 255
        loss = step(batch,
                    target)
        seen.append(describe(loss))
"""
PLAYING = """\
import numpy as np
for i in range(9):
    action = policy(state)
    state = env.step(action)
    buffer.add(state)
    batch = buffer.sample(64)
    loss = agent.learn(batch)
    scores[i] = loss
    agent.save("file")
    np.save("file", scores)
    print(batch.mean())
"""
DRAWING = """\
def draw(n):
    index = permutation(n)
    return states[index]
def learn(batch):
    logged.update(batch)
for i in range(9):
    action = policy(state)
    states[i] = env.step(action)
    batch = draw(i)
    loss = learn(batch)
    logged["loss"] = loss
"""


@cases(
    (ROUNDS, 5, {2, 3, 4, 5, 6}),
    ("while True:\n    step(next(data))\n    log()\n", 2, {2}),
    ("step(x)\n", 1, None),
    (DRAWING, 10, {6, 7, 8, 9, 10}),
    (PLAYING, 7, {3, 4, 5, 6, 7}),
    ("for i in range(9):\n    rows[:] = load(i)\n    log.append(i)\n    step(rows)\n", 4, {1, 2, 4}),
    ("for i in range(9):\n    fill(rows)\n    print(i)\n    step(rows)\n", 4, {2, 4}),
    (
        "for i in range(9):\n    rows = []\n    for x in play():\n        rows.append(x)\n    step(rows)\n",
        5,
        {2, 3, 4, 5},
    ),
    (
        "for i in range(9):\n    rows = zeros(4)\n    for t in ts:\n        rows[t], n = t, 1\n    step(rows)\n",
        5,
        {2, 3, 4, 5},
    ),
    ("for i in range(9):\n    rows = play(i)\n    for _ in range(4):\n        step(rows)\n", 4, {1, 2, 4}),
    ("for i in range(9):\n    full = memory.add(play())\n    step(memory.sample())\n    print(full)\n", 3, {2, 3}),
)
def test_the_lines_that_make_the_arguments(script: str, line: int, expected: set[int] | None) -> None:
    """Traps: a replay buffer is filled by calls that assign nothing, or is arrays that a function draws from.

    Logging and checkpoints fill nothing.
    """
    spans = makers(SyntaxTree(script), line)
    assert (spans and {one for first, last in spans for one in range(first, last + 1)}) == expected


def test_the_line_that_assigned_a_traced_number_is_told_once(tmp_path: Path) -> None:
    path = ran(tmp_path / "train.py", "for x in data:\n    lr = x / 2\n    step(x, lr)\n")
    trace = {"kind": "trace", "name": "step", "at": [str(path), 3], "given": 2}
    lines = [{**trace, "numbers": [{"name": "rate", "value": rate, "place": 1}]} for rate in ("0.5", "1.0")]
    with (tmp_path / RUN_LOG).open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    assert account(tmp_path).assigned == (AssignedNumber("step", "rate", (str(path), 3), (str(path), 2)),)


def test_makers_are_told_of_the_call_of_the_user(tmp_path: Path) -> None:
    told(tmp_path, "for x in data:\n    rows = [x]\n    step(rows)\n")
    (one,) = account(tmp_path).makers[:1]
    assert (one.at, set(one.lines)) == ((str(tmp_path / "train.py"), 3), {(1, 1), (2, 2), (3, 3)})

"""What loops around training keep, read from the source of a script that runs, by the frames of its calls."""

# ruff: noqa: E501, ISC004 - scripts, one a line
import ast
import linecache
import os
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import get_ident as ident
from typing import Any, ClassVar

import pytest

from tests.capture import agent

kept = agent.load("run.kept")
loops_of = agent.load("run.kept.frames")
sources = agent.load("run.kept.source")

EMPTY = "history = []"
LOOP = "for x in data:\n    loss, z = step(x)\n    "


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A garbage collection of all tests' objects can take longer than a user's process is given."""
    monkeypatch.setattr(kept, "MOST_S", 60.0)


def told(folder: Path, script: str) -> list[dict[str, Any]]:
    """Return what the log gets of a user's script."""
    return list(calls(folder, script).take())


def calls(folder: Path, script: str) -> Any:
    """Run a user's script whose `step` trains, and whose models have a `fit`; return its calls that train."""
    path = folder / "train.py"
    path.write_text(textwrap.dedent(script))
    os.utime(path, (1e9, 1e9))
    linecache.checkcache(str(path))
    noted = kept.KeptLines()

    def step(*values: object) -> tuple[object, object]:
        noted.add(kept_caller())
        return values, values

    class Model:
        def fit(self, *_: object) -> "Model":
            noted.add(kept_caller(), fits=True)
            return self

        history: ClassVar = {"loss": [0.5]}

    names = {"step": step, "Model": Model, "data": [1, 2, 3], "__name__": "__main__"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return noted


def kept_caller() -> Any:
    import inspect  # noqa: PLC0415

    return inspect.stack()[2].frame


def found(folder: Path, script: str) -> list[tuple[int, str, str, str, bool]]:
    return [
        (line["at"][1], line["container"], line["value"], line["what"], line["each"])
        for line in told(folder, script)
    ]


KEPT = {
    "tuple": (
        f"{EMPTY}\n{LOOP}history.append((loss, z))",
        (4, "history", "(loss, z)", "result", True),
    ),
    "call": ("history = []\nfor x in data:\n    history.append(step(x))",
             (3, "history", "step(x)", "result", True)),
    "sometimes": (
        f"{EMPTY}\n{LOOP}if x == 2:\n        history.append(loss)",
        (5, "history", "loss", "result", False),
    ),
    "passed-on": (f"{EMPTY}\n{LOOP}both = (loss, 1)\n    history.append(both)",
                  (5, "history", "both", "result", True)),
    "converted": (f"{EMPTY}\n{LOOP}history.append(tf_like(loss))",
                  (4, "history", "tf_like(loss)", "other", True)),
    "array": (f"{EMPTY}\n{LOOP}history += [x.__class__]", (4, "history", "[x.__class__]", "other", True)),
    "in-a-dict": ("logs = {'loss': []}\n" + LOOP + "logs['loss'].append(loss)",
                  (4, "logs[…]", "loss", "result", True)),
    "by-key": ("logs = dict()\n" + LOOP + "logs[x] = z", (4, "logs", "z", "result", True)),
    "set": ("logs = set()\n" + LOOP + "logs.add(loss)", (4, "logs", "loss", "result", True)),
    "deque": (f"import collections\nlogs = collections.deque()\n{LOOP}logs.append(loss)",
              (5, "logs", "loss", "result", True)),
    "while": ("history, n = [], 3\nwhile n:\n    n -= 1\n    loss, z = step(n)\n    history.append(loss)",
              (5, "history", "loss", "result", True)),
    "epoch": (f"{EMPTY}\nfor epoch in data:\n    for x in data:\n        loss, z = step(x)\n    history.append(z)",
              (5, "history", "z", "result", False)),
    "function": (
        "def main():\n    history = []\n    for x in data:\n        loss, z = step(x)\n        history.append(z)\nmain()",
        (5, "history", "z", "result", True),
    ),
    "through-a-function": (
        "def train(x):\n    loss, z = step(x)\n    return loss, float(len(z))\n"
        "history = []\nfor x in data:\n    loss, n = train(x)\n    history.append((loss, n))",
        (7, "history", "(loss, n)", "result", True),
    ),
    "attribute": (
        "class Trainer:\n    def __init__(self):\n        self.history = []\n    def run(self):\n"
        "        for x in data:\n            loss, z = step(x)\n            self.history.append(loss)\nTrainer().run()",
        (7, "self.history", "loss", "result", True),
    ),
    "beside-the-step": (
        "class Agent:\n    memory = []\n    def remember(self, *transition):\n        self.memory.append(transition)\n"
        "    def replay(self):\n        step(1)\nagent = Agent()\nfor x in data:\n    agent.remember(x)\n"
        "    agent.replay()",
        (4, "self.memory", "transition", "other", True),
    ),
    "closure": (
        "def main():\n    history = []\n    def note(value):\n        history.append(value)\n    for x in data:\n"
        "        loss, z = step(x)\n        note(loss)\nmain()",
        (4, "history", "value", "other", True),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("script", "expected"), KEPT.values(), ids=KEPT)
def test_what_is_kept(tmp_path: Path, script: str, expected: tuple[object, ...]) -> None:
    names = "def tf_like(x):\n    return [x]\n" if "tf_like" in script else ""
    moved = len(names.splitlines())
    (one,) = found(tmp_path, names + script)
    assert (one[0] - moved, *one[1:]) == expected


TRAPS = {
    "floats": f"{EMPTY}\n{LOOP}history.append(float(len(z)))",
    "a-name-that-is-a-float": f"{EMPTY}\n{LOOP}n = float(x)\n    history.append((n + 0.5 if n else 0, 'a'))",
    "a-name-that-becomes-a-float": f"{EMPTY}\n{LOOP}loss = float(len(loss))\n    history.append(loss)",
    "formatted": f"{EMPTY}\n{LOOP}history.append(f'{{loss}}')\n    history.append('%s' % (loss,))",
    "a-sum": f"{EMPTY}\ntotal = 0.0\n{LOOP}total += float(x)\n    history.append(total)",
    "a-sum-of-what-a-function-returns": (
        f"def number(x):\n    return x, float(x)\n{EMPTY}\nfor x in data:\n    total = 0\n    for y in data:\n"
        "        step(x)\n        name, n = number(y)\n        total = total + n\n    history.append(total)"
    ),
    "a-function-that-returns-floats": (
        f"def number(x):\n    return float(len(x))\n{EMPTY}\n{LOOP}history.append(number(z))"
    ),
    "made-anew": "for epoch in data:\n    history = []\n    for x in data:\n        loss, z = step(x)\n"
    "        history.append(loss)",
    "assigned-in-the-loop": f"{EMPTY}\n{LOOP}history.append(loss)\n    history = history[-2:]",
    "cleared": f"{EMPTY}\n{LOOP}history.append(loss)\n    if x == 2:\n        history.clear()",
    "popped": f"{EMPTY}\n{LOOP}history.append(loss)\n    history.pop(0)",
    "cut": f"{EMPTY}\n{LOOP}history.append(loss)\n    history[:] = history[-2:]",
    "deleted-from": f"{EMPTY}\n{LOOP}history.append(loss)\n    del history[0]",
    "given-to-a-function": (
        f"def flush(xs):\n    xs.clear()\n{EMPTY}\n{LOOP}history.append(loss)\n    flush(history)"
    ),
    "cleared-elsewhere": (f"def flush():\n    history.clear()\n{EMPTY}\n{LOOP}history.append(loss)\n    flush()"),
    "made-anew-by-a-function": (
        f"def reset():\n    global history\n    history = []\n{EMPTY}\n{LOOP}history.append(loss)\n    reset()"
    ),
    "bounded": f"import collections\nhistory = collections.deque(maxlen=9)\n{LOOP}history.append(loss)",
    "local-of-a-function-in-the-loop": (
        "def train():\n    losses = []\n    for x in data:\n        loss, z = step(x)\n        losses.append(loss)\n"
        "for epoch in data:\n    train()"
    ),
    "constant-keys": f"logs = {{}}\n{LOOP}logs['loss'] = loss",
    "a-place-in-a-list": f"logs = [None] * 9\n{LOOP}logs[x] = loss",
    "no-container": f"class Metric:\n    def add(self, x): ...\nmetric = Metric()\n{LOOP}metric.add(loss)",
    "unknown-container": f"import array\nhistory = array.array('d')\n{LOOP}history.append(x)",
    "another-loop": f"{EMPTY}\nfor x in data:\n    step(x)\nfor y in data:\n    history.append([y])",
    "before-the-loop": f"{EMPTY}\nhistory.append(data)\nfor x in data:\n    step(x)",
    "another-scope": (f"{EMPTY}\ndef later(loss):\n    history.append(loss)\nfor x in data:\n    step(x)"),
    "comprehension": "for epoch in data:\n    losses = [step(x) for x in data]",
    "no-loop": f"{EMPTY}\nloss, z = step(1)\nhistory.append(loss)",
    "attribute-of-an-object-made-in-the-loop": (
        "class Trainer:\n    def __init__(self):\n        self.history = []\n    def run(self):\n"
        "        for x in data:\n            loss, z = step(x)\n            self.history.append(loss)\n"
        "for rate in data:\n    trainer = Trainer()\n    trainer.run()"
    ),
    "attribute-made-again": (
        "class Trainer:\n    def __init__(self):\n        self.reset()\n    def reset(self):\n"
        "        self.history = []\n    def run(self):\n        for x in data:\n            loss, z = step(x)\n"
        "            self.history.append(loss)\nTrainer().run()"
    ),
    "scores-of-models": (
        "scores = []\nfor x in data:\n    history = Model().fit(x)\n    scores.append(history.history['loss'][-1])"
    ),
}


@pytest.mark.parametrize("script", TRAPS.values(), ids=TRAPS)
def test_nothing_is_said_of(tmp_path: Path, script: str) -> None:
    assert found(tmp_path, script) == []


MODELS = {
    "histories.append(history)": "history",
    "histories.append((x, history))": "history",
    "histories.append(model)": "model",
    "histories.append(history.model)": "model",
    "histories.append(model.fit(x))": "history",
    "histories.append(model.get_weights())": "other",
}


CHANGED = {
    "loss = tf_like(loss)": "other",
    "if x == 2:\n        loss = 0.5": "other",
    "if x == 2:\n        loss = 0.5\n    else:\n        loss, z = step(x)": "other",
    "z = loss = step(x)": "result",
    "loss = loss[0]": "result",
    "while z:\n        history.append(loss)\n        loss = z = 0": "other",
}


@pytest.mark.parametrize(("change", "what"), CHANGED.items())
def test_a_name_holds_what_it_got_last(tmp_path: Path, change: str, what: str) -> None:
    script = f"def tf_like(x):\n    return [x]\n{EMPTY}\n{LOOP}{change}\n    history.append(loss)"
    assert {line[3] for line in found(tmp_path, script)} == {what}


@pytest.mark.parametrize(("statement", "what"), MODELS.items())
def test_what_is_kept_of_models(tmp_path: Path, statement: str, what: str) -> None:
    script = (
        "Model.get_weights = lambda model: [0]\nModel.model = None\nhistories = []\nfor x in data:\n"
        f"    model = Model()\n    history = model.fit(x)\n    {statement}\n"
    )
    lines = told(tmp_path, script)
    assert {(line["what"], line["fits"], line["each"]) for line in lines} == {(what, True, True)}
    assert [line["at"][1] for line in lines] == [7]


def test_a_function_that_returns_the_history_hands_it_on(tmp_path: Path) -> None:
    script = (
        "def train(x):\n    model = Model()\n    history = model.fit(x)\n    return float(x), history\n"
        "scores, histories = [], []\nfor x in data:\n    score, history = train(x)\n    scores.append(score)\n"
        "    histories.append(history)\n"
    )
    assert found(tmp_path, script) == [(9, "histories", "history", "history", True)]


def test_names_under_a_tape_hold_tensors(tmp_path: Path) -> None:
    script = (
        "class GradientTape:\n    gradient = staticmethod(step)\n    __enter__ = lambda tape: tape\n    __exit__ = lambda *_: None\n"
        "history = []\nfor x in data:\n    with GradientTape() as tape:\n        loss = [x]\n"
        "    grads = tape.gradient(loss, x)\n    history.append(loss)\n"
    )
    assert found(tmp_path, script) == [(10, "history", "loss", "result", True)]


def test_what_a_library_returns_is_no_tensor_for_certain(tmp_path: Path) -> None:
    script = (
        f"train_on_batch = step\n{EMPTY}\nfor x in data:\n    loss = train_on_batch(x)\n    history.append(loss)"
    )
    assert [line[3] for line in found(tmp_path, script)] == ["other"]


def test_each_call_is_read_once_and_each_line_told_once(tmp_path: Path) -> None:
    script = f"{EMPTY}\n{LOOP}history.append(loss)\n    step(x)\n"
    assert len(told(tmp_path, script)) == 1


def test_long_values_are_cut_and_strings_left_out(tmp_path: Path) -> None:
    long = ", ".join(["loss"] * 30)
    script = f"{EMPTY}\n{LOOP}history.append(({long}))\n    history.append((loss, 'secret', f'{{x}}', 7))"
    cut, other = [line["value"] for line in told(tmp_path, script)]
    assert (len(cut), cut[-1]) == (60, "…")
    assert other == "(loss, …, …, 7)"


def test_a_file_is_parsed_only_where_it_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trap: Python 3.11.7 fails in AutoGraph where another thread parses at the same moment."""
    parse, threads = ast.parse, list[int]()

    def noting(*args: Any, **kwargs: Any) -> Any:
        threads.append(ident())
        return parse(*args, **kwargs)

    with monkeypatch.context() as patched, ThreadPoolExecutor(1) as writer:
        patched.setattr(ast, "parse", noting)
        noted = calls(tmp_path, KEPT["tuple"][0])
        lines = writer.submit(noted.take).result()
    assert len(lines) == 1
    assert set(threads) == {ident()}


def test_the_number_of_calls_and_statements_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_TOLD", 7)
    many = "\n".join(f"for x in data:\n    loss, z = step(x)\n    history.append(loss)  # {n}" for n in range(10))
    assert len(told(tmp_path, f"{EMPTY}\n{many}")) == 7


def test_nothing_more_is_read_once_it_has_taken_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_S", 0.0)
    assert told(tmp_path, f"{EMPTY}\n{LOOP}history.append(loss)") == []


@pytest.mark.parametrize("text", ["", "def broken(:\n", "history = []\n" * 20_000, "x = 1\n" * 9])
def test_another_source_than_the_one_that_runs_says_nothing(tmp_path: Path, text: str) -> None:
    script = f"{EMPTY}\ndef main():\n    for x in data:\n        history.append(step(x))\nmain()"
    assert found(tmp_path, script)
    noted, path = kept.KeptLines(), tmp_path / "other.py"
    path.write_text(text)
    os.utime(path, (1e9, 1e9))
    names = {"step": lambda _: noted.add(kept_caller()), "data": [1]}
    exec(compile(script, str(path), "exec"), names)
    assert noted.take() == []


def test_a_file_that_was_edited_since_says_nothing(tmp_path: Path) -> None:
    noted, path = kept.KeptLines(), tmp_path / "edited.py"
    script = f"{EMPTY}\nfor x in data:\n    history.append(step(x))\n"
    path.write_text(script)
    os.utime(path, (time.time() + 60,) * 2)
    exec(compile(script, str(path), "exec"), {"step": lambda _: noted.add(kept_caller()), "data": [1]})
    assert noted.take() == []


def test_a_line_of_nested_scopes_belongs_to_the_innermost() -> None:
    import ast  # noqa: PLC0415

    text = "def f():\n    for x in y:\n        def g():\n            step()\n        g()\n"
    source = sources.UserSource(ast.parse(text))
    assert (source.scope_at(4).name, source.scope_at(5).name) == ("g", "f")
    assert loops_of.At(source, 4).outermost is None
    assert loops_of.At(source, 5).outermost is not None

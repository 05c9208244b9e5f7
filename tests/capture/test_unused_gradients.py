"""Which eager gradients of a script go into nothing."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture import agent
from tests.capture.running import profiled


class Tensor:
    """Stands for an eager tensor."""

    made = 0

    def __init__(self) -> None:
        Tensor.made += 1
        self._id = Tensor.made


class Tape:
    """Stands for a tape that follows two variables."""

    def __init__(self, *variables: Any) -> None:
        self.variables = variables

    def watched_variables(self) -> Any:
        return self.variables


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Any:
    """TensorFlow's functions that start operations: each makes a tensor."""
    functions = SimpleNamespace(TFE_Py_FastPathExecute=lambda *_: Tensor(), TFE_Py_Execute=lambda *_: [Tensor()])
    monkeypatch.setitem(sys.modules, "tensorflow.python.pywrap_tfe", functions)
    return functions


@pytest.fixture
def noted(tmp_path: Path) -> Any:
    log = agent.load("process.journal").Journal(str(tmp_path))
    return agent.load("program.gradients").UnusedGradients(log)


def run(started: Any, kind: str, *inputs: Any) -> Tensor:
    tensor: Tensor = started.TFE_Py_FastPathExecute(None, kind, None, *inputs)
    return tensor


def variable(name: str) -> Any:
    return SimpleNamespace(name=name, handle=Tensor())


HEAD, BODY = variable("head"), variable("body")


def train(noted: Any, started: Any, *, applied: int, steps: int = 7, traced: bool = False) -> None:
    """Take the gradients of two variables, and apply so many of them."""

    def back() -> list[Tensor]:
        loss = run(started, "Mul", Tensor())
        return [run(started, "MatMul", loss), run(started, "Conv", run(started, "Relu", loss))]

    for _ in range(steps):
        gradients = noted.taken(back, Tape(HEAD, BODY), [HEAD, BODY], traced=traced)
        for gradient in gradients[:applied]:
            run(started, "Assign", gradient)


def test_what_leads_only_to_an_unused_gradient_is_useless(noted: Any, started: Any) -> None:
    original = started.TFE_Py_FastPathExecute
    train(noted, started, applied=1)
    (line,) = noted.describe()
    assert line["names"] == ["body"]
    assert (line["returned"], line["unused"], line["variables"]) == (1, 1, 2)
    assert sorted(kind for kind, _, _ in line["types"]) == ["Conv", "Relu"]
    assert (line["operations"], line["step_operations"]) == (2, 5)
    assert started.TFE_Py_FastPathExecute is original


def test_used_gradients_have_no_useless_work(noted: Any, started: Any) -> None:
    train(noted, started, applied=2)
    assert noted.describe()[0]["operations"] == 0


def test_without_any_use_nothing_is_said(noted: Any, started: Any) -> None:
    """Trap: gradients that NumPy reads and that no operation takes."""
    train(noted, started, applied=0)
    (line,) = noted.describe()
    assert not line["too_few"]
    assert "followed" not in line


def test_too_few_calls_before_the_traced_steps_are_not_followed(noted: Any, started: Any) -> None:
    train(noted, started, applied=1, steps=5)
    noted.rest()
    train(noted, started, applied=1, traced=True)
    told = [(line.get("followed"), line["too_few"], line["traced"]) for line in noted.describe()]
    assert told == [(None, True, 0), (None, True, 7)]  # the second line came later


@pytest.mark.parametrize(("steps", "followed"), [(5, None), (6, True)])
def test_six_calls_are_enough(noted: Any, started: Any, steps: int, *, followed: bool | None) -> None:
    """Of the third and the fourth call, two more calls show what becomes of their gradients."""
    train(noted, started, applied=1, steps=steps)
    assert noted.describe()[0].get("followed") is followed


def test_lines_beyond_the_kept_ones_are_told_as_unknown(noted: Any) -> None:
    noted.rest()
    code = "noted.taken(list, Tape(HEAD), [HEAD], traced=True)\n" * 20
    exec(compile(code, __file__, "exec"), {**globals(), "noted": noted})
    assert [line["traced"] for line in noted.describe()] == [1] * 16 + [4]


def test_a_loop_that_takes_no_more_gradients_is_not_noted_forever(
    noted: Any, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = started.TFE_Py_FastPathExecute
    monkeypatch.setattr(agent.load("program.gradients"), "MOST", 50)
    train(noted, started, applied=1, steps=4)
    for _ in range(60):
        run(started, "Mul")
    assert started.TFE_Py_FastPathExecute is original
    train(noted, started, applied=1)
    assert not any(line.get("followed") for line in noted.describe())


def test_the_traced_steps_are_not_noted(noted: Any, started: Any) -> None:
    original = started.TFE_Py_FastPathExecute
    train(noted, started, applied=1, steps=4)
    assert started.TFE_Py_FastPathExecute is not original
    noted.rest()
    assert started.TFE_Py_FastPathExecute is original


def test_a_gradient_that_fails_raises_as_before(noted: Any, started: Any) -> None:
    def fail() -> object:
        run(started, "Mul")
        raise ValueError("no path")

    for _ in range(4):
        with pytest.raises(ValueError, match="no path"):
            noted.taken(fail, Tape(HEAD), [HEAD], traced=False)
    assert "followed" not in noted.describe()[0]


LOOPS = """
import tensorflow as tf

def weights(*shapes):
    return [tf.Variable(tf.random.normal(shape) * 0.1) for shape in shapes]

body, head = weights((64, 64), (64, 64)), weights((64, 8), (8,))
x, kept, rate = tf.random.normal((16, 64)), [], tf.constant(0.01)

def features(body):
    return tf.nn.relu(tf.nn.relu(x @ body[0]) @ body[1])

def loss_of(body, head):
    return tf.reduce_mean((features(body) @ head[0] + head[1]) ** 2)

def apply(gradients, variables):
    for gradient, variable in zip(gradients, variables):
        variable.assign_sub(rate * gradient)

def all_taken():
    with tf.GradientTape() as tape:
        loss = loss_of(body, head)
    return tape.gradient(loss, body + head)

def only_head_applied():
    apply(all_taken()[2:], head)

def only_head_taken():
    with tf.GradientTape() as tape:
        loss = loss_of(body, head)
    apply(tape.gradient(loss, head), head)

def features_before():
    found = features(body)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((found @ head[0] + head[1]) ** 2)
    apply(tape.gradient(loss, head), head)

def two_optimizers():
    gradients = all_taken()
    apply(gradients[:2], body)
    apply(gradients[2:], head)

def clipped():
    gradients, _ = tf.clip_by_global_norm(all_taken(), 1.0)
    apply(gradients[2:], head)

def norms_logged():
    unit = 1.0
    gradients = all_taken()
    apply(gradients[2:], head)
    return [unit * float(tf.norm(gradient)) for gradient in gradients]

def values_logged():
    unit, logged = 1.0, []
    gradients = all_taken()
    apply(gradients[2:], head)
    return [gradient.numpy().mean() for gradient in gradients]

def accumulated():
    kept.append(all_taken())
    if len(kept) == 4:
        apply([tf.add_n(each) for each in zip(*kept)], body + head)
        kept.clear()
    else:
        apply(kept[-1][2:], head)

def penalized():
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = loss_of(body, head)
        penalty = tf.reduce_sum(inner.gradient(loss, x) ** 2)
        loss = loss_of(body, head) + penalty
    apply(outer.gradient(loss, body + head), body + head)

def inner_steps():
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = loss_of(body, head)
        gradients = inner.gradient(loss, body + head)
        fast = [w - rate * g for w, g in zip(body + head, gradients)]
        loss = loss_of(fast[:2], fast[2:])
    apply(outer.gradient(loss, body + head), body + head)

for step in (only_head_applied, only_head_taken, features_before, two_optimizers, clipped, norms_logged,
             values_logged, accumulated, penalized, inner_steps):
    for _ in range(9):
        step()
for _ in range(60):
    only_head_applied()
"""


@pytest.mark.tensorflow
def test_only_back_propagation_without_use_is_told(tmp_path: Path) -> None:
    """The traps: each gradient of theirs is applied, clipped, logged, kept or differentiated again."""
    script = tmp_path / "train.py"
    script.write_text(LOOPS)
    result = profiled(script, tmp_path / "out", warmup=30, steps=5)
    assert not result.manifest.agent_errors
    lines = result.manifest.steps.gradients
    assert lines is not None
    source = LOOPS.splitlines()
    assert all(line.followed for line in lines)
    told = [(source[line.at[1] - 1].strip(), line) for line in lines if line.at]
    assert len(told) == 13
    useless = [(text, line) for text, line in told if line.operations > FEW]
    assert [text for text, _ in useless] == [
        "return tape.gradient(loss, body + head)",
        "apply(tape.gradient(loss, head), head)",
        "penalty = tf.reduce_sum(inner.gradient(loss, x) ** 2)",  # the inner tape follows all variables
        "return tape.gradient(loss, body + head)",
    ]
    assert [line.returned for _, line in useless] == [2, 0, 0, 2]
    assert [line.unused for _, line in useless] == [2, 2, 4, 2]
    assert useless[-1][1].traced == 5


FEW = 1
"""Operations of back-propagation whose results go nowhere, such as that of a constant exponent."""

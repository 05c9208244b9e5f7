"""Which eager gradients of a script go into nothing."""

import itertools

from tests.capture.kit import *


class Tensor:
    """Stands for an eager tensor."""

    made = itertools.count(1)

    def __init__(self) -> None:
        self._id = next(self.made)


def tape(*variables: Any) -> Any:
    """Return what stands for a tape that follows variables."""
    return SimpleNamespace(watched_variables=lambda: variables)


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


HEAD, BODY = (SimpleNamespace(name=name, handle=Tensor()) for name in ("head", "body"))


def taken(noted: Any, take: Any, followed: Any, sources: Any, *, traced: bool) -> Any:
    """Take gradients as the stream of events has them noted."""
    call, result, failed = noted.begins(followed, sources, traced=traced), None, None
    try:
        result = take()
    except ValueError as error:
        failed = error
        raise
    finally:
        if call is not None:
            noted.ends(call, result, failed)
    return result


def train(noted: Any, started: Any, *, applied: int, steps: int = 7, traced: bool = False) -> None:
    """Take the gradients of two variables, and apply so many of them."""

    def back() -> list[Tensor]:
        loss = run(started, "Mul", Tensor())
        return [run(started, "MatMul", loss), run(started, "Conv", run(started, "Relu", loss))]

    for _ in range(steps):
        gradients = taken(noted, back, tape(HEAD, BODY), [HEAD, BODY], traced=traced)
        for gradient in gradients[:applied]:
            run(started, "Assign", gradient)


USELESS = {"names": ["body"], "returned": 1, "unused": 1, "variables": 2, "operations": 2, "step_operations": 5}


@cases(
    (1, 7, USELESS),
    (2, 7, {"names": [], "returned": 0, "operations": 0}),
    (0, 7, {"too_few": False, "followed": None}),  # trap: gradients that NumPy reads and that no operation takes
    # Of the third and the fourth call, two more calls show what becomes of their gradients.
    (1, 6, {"too_few": False, "followed": True}),
    (1, 5, {"too_few": True, "followed": None}),
)
def test_what_leads_only_to_an_unused_gradient_is_useless(
    applied: int, steps: int, expected: dict[str, Any], noted: Any, started: Any
) -> None:
    original = started.TFE_Py_FastPathExecute
    train(noted, started, applied=applied, steps=steps)
    (line,) = noted.describe()
    assert {name: line.get(name) for name in expected} == expected
    assert expected is not USELESS or sorted(kind for kind, _, _ in line["types"]) == ["Conv", "Relu"]
    assert (started.TFE_Py_FastPathExecute is original) is (steps >= 6)


def test_too_few_calls_before_the_traced_steps_are_not_followed(noted: Any, started: Any) -> None:
    original = started.TFE_Py_FastPathExecute
    train(noted, started, applied=1, steps=5)
    noted.rest()
    assert started.TFE_Py_FastPathExecute is original
    train(noted, started, applied=1, traced=True)
    told = [(line.get("followed"), line["too_few"], line["traced"]) for line in noted.describe()]
    assert told == [(None, True, 0), (None, True, 7)]  # the second line came later


def test_lines_beyond_the_kept_ones_are_told_as_unknown(noted: Any) -> None:
    noted.rest()
    code = "taken(noted, list, tape(HEAD), [HEAD], traced=True)\n" * 20
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
    assert (any(line.get("followed") for line in noted.describe()), noted.log.errors) == (False, [])


def test_a_gradient_that_fails_raises_as_before(noted: Any, started: Any) -> None:
    def fail() -> object:
        run(started, "Mul")
        raise ValueError("no path")

    original = started.TFE_Py_FastPathExecute
    for _ in range(7):
        with pytest.raises(ValueError, match="no path"):
            taken(noted, fail, tape(HEAD), [HEAD], traced=False)
    assert "followed" not in noted.describe()[0]
    assert (started.TFE_Py_FastPathExecute is original, noted.log.errors) == (True, [])

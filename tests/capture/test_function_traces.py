"""Which calls of a tf.function the agent counts as traces, and when it keeps their times."""

from collections import deque

from tests.capture.kit import *
from tfdoctor.capture.agent.process.journal import Journal
from tfdoctor.capture.agent.window.function_traces import FunctionTraces


class Function:
    """A tf.function by what the agent asks of it: the tracings that TensorFlow counted after each call."""

    _name = "step"

    @staticmethod
    def python_function() -> None: ...

    def __init__(self, *tracings: int, uses: Sequence[object] = ()) -> None:
        self.tracings = deque(tracings)
        self.graph = SimpleNamespace(trainable_variables=uses)
        self._concrete_variable_creation_fn = SimpleNamespace(graph=self.graph)

    def experimental_get_tracing_count(self) -> int:
        return self.tracings.popleft()


@cases(
    ((2, 2, 3, 4, 4), 9, [0, 2, 3], True),  # the first call of a function that creates variables traces twice
    ((1, 1, 2, 2), 9, None, False),  # the second trace is often that of a last, smaller batch
    ((1, 2, 3, 3), 1, [0, 1, 2], False),  # times while the profiler runs are not kept
)
def test_calls_that_trace_are_counted_once_and_timed(
    tracings: Any, opened: int, traced: Any, *, timed: bool
) -> None:
    """A call for each number of tracings; the profiler runs from the call ``opened`` on."""
    function, traces = Function(*tracings), FunctionTraces(Journal("unused"), {})
    for number in range(len(tracings)):
        traces.called(function, time.perf_counter_ns() - 5_000_000, outside=number < opened)
    assert not traces.log.errors
    found: list[Any] = traces.describe()
    assert [entry["traced"] for entry in found] == ([] if traced is None else [traced])
    for entry in found:
        assert (entry["calls"], entry["tracings"]) == (len(tracings), 3)
        times = entry["traced_ms"], entry["call_ms"]
        assert all(ms >= 5.0 for ms in times) if timed else times == (None, None)


class Variable:
    """A variable of a model."""


def remade(*, models: int, tests: bool = False) -> list[Any]:
    """Train for six epochs with a function object for each, of so many models in turns; 0: no variable is known.

    Every other one may test the model instead; the order of the variables changes.
    """
    variables = [[Variable(), Variable()] for _ in range(models)]
    marks: dict[int, dict[str, bool]] = {}
    traces, kept = FunctionTraces(Journal("unused"), marks), list[Function]()
    for epoch in range(6):
        function = Function(1, 1, uses=variables[epoch % models][:: 1 if epoch % 2 else -1] if models else ())
        kept.append(function)
        marks[id(function.graph)] = {"_tfdoctor_trains": True} if not tests or epoch % 2 else {}
        for _ in range(2):
            traces.called(function, time.perf_counter_ns() - 5_000_000, outside=True)
    assert not traces.log.errors
    return list(traces.describe())


@cases(
    ({"models": 1}, [(6, 12, [0, 2, 4, 6, 8, 10])]),
    # A regression: Keras defines what trains and what tests at one line, and which variable comes first is no
    # certain order.
    ({"models": 1, "tests": True}, [(3, 6, [0, 2, 4])] * 2),
    # Trap: cross-validation builds a model for each fold, which needs a trace of its own.
    ({"models": 2}, [(3, 6, [0, 2, 4])] * 2),
    ({"models": 6}, []),
    ({"models": 0}, []),
)
def test_function_objects_that_train_the_same_are_one_function(given: Any, told: Any) -> None:
    assert [(entry["made"], entry["calls"], entry["traced"]) for entry in remade(**given)] == told

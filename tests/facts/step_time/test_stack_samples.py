"""Where Python was between the training calls, and what decides the arguments of the next one."""

from typing import Any

import pytest

from tests.builders import chart, graph_operation, recording, trace
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.facts.step_time.timed_line import TimedLine
from tfdoctor.terms.verdict import Location

PATH = "/home/me/dqn.py"
CALL = "tensorflow.python.eager.polymorphic_function.Function.__call__"
FED = {"at": [PATH, 60], "function": "learn", "arguments": []}


def decides(*, reads: str = "ReadVariableOp", makes: bool = True, at: int = 50, **more: Any) -> bool:
    """Judge a loop that calls a function or a model on a line, and trains on line 60."""
    enters = {"calls": CALL, "runs": "tensorflow.execute.quick_execute", "inside": True}
    place = {"at": [PATH, at], "seen": 9, "makes": makes, **enters, **more}
    graphs = [
        {"name": name, "operations": [graph_operation("x", kind)], **of}
        for name, kind, of in (
            ("act", reads, {}),
            ("learn", "ReadVariableOp", {}),
            ("learn_cond", "ReadVariableOp", {"outer": "learn"}),
            ("read", "ReadVariableOp", {"kind": "dataset"}),
        )
    ]
    program = {"python": {"places": [place], "fed": FED}, "graphs": graphs}
    return chart(trace([]), recording(program)).fact(StackSamples).models_at == {Location(PATH, at)}


def test_a_policy_s_actions_decide_what_is_in_a_batch() -> None:
    assert decides()
    assert decides(calls="keras.src.models.model.Model.predict", runs="", inside=False)


@pytest.mark.parametrize(("own", "made"), [(9, 0), (10, 10)])
def test_what_a_line_does_beside_a_slow_call_makes_no_batch(own: int, made: int) -> None:
    """Samples between two frames of predict show the line itself, which has no code of its own."""
    at = Location(PATH, 50)
    places = (TimedLine(at, 9, makes=True, calls={"keras.Model.predict": 9}), TimedLine(at, own, makes=True))
    makers = StackSamples(places, new_arguments=((8,),)).makers
    assert sum(one.seen for one in makers) == made


@pytest.mark.parametrize(
    "other", [{"reads": "RandomUniform"}, {"makes": False}, {"at": 60}, {"calls": "numpy.stack"}]
)
def test_preprocessing_and_other_calls_do_not(other: dict[str, Any]) -> None:
    """A function without variables prepares data; what makes no argument, and the training call, decide nothing."""
    assert not decides(**other)

"""frozen-layers: both sides of its limits, and work that only looks the same."""

from tests.rules.kit import *
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.rules.operations.frozen_layers import Limits, check

TEACHER = took("teacher/conv/Relu", "Conv2D", 20.0, layer="conv", at=script(34))
FROZEN = FrozenWork(("conv",), (TEACHER,), features_bytes=1280, passes=4.0, batches=25)
CONV = FrozenWork(("conv",), (), passes=4.0)


def example(
    frozen: FrozenWork = FROZEN, memory: HostMemory | None = None, dispatch: Dispatch | None = None,
    rest: str = "Conv2DBackpropFilter",
) -> Verdict:  # fmt: skip
    """A frozen teacher takes 20 of 30 ms of compute in each of four epochs."""
    return check(frozen, training_step(30.0, *frozen.rows, rest=rest), memory, dispatch)


sick = example
healthy = described("The same in a run of a single epoch.", example, replace(FROZEN, passes=1.0))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["two frozen layers"] = example(replace(FROZEN, layers=("a", "b")))
    told["the host no longer starts the frozen part"] = example(dispatch=Dispatch(in_loops_ms=9.0, outside_ms=0.5))
    told["a twentieth of the step, and less"] = [
        example(replace(FROZEN, rows=(replace(TEACHER, ms=ms),))) for ms in (30 * Limits().share, 1.4)
    ]
    told["two passes, less"] = [example(replace(FROZEN, passes=passes)) for passes in (Limits().passes, 1.9, None)]
    told["results fit into half of the memory, and not"] = [
        example(memory=HostMemory(total=1e9, used=1e9 - free)) for free in (64_000.0, 63_000.0)
    ]
    told["the inputs differ"] = example(replace(FROZEN, differs="flip in the pipeline draws random numbers"))
    told["no frozen layer"] = example(FrozenWork((), ()))
    told["augmentation layers in the model, before a frozen base, and unnamed work"] = example(CONV)
    told[...] = example(CONV, rest="compiled or unnamed")

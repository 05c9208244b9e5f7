"""new-shapes: searches that go on, and those that are over."""

from tests.rules.kit import *
from tfdoctor.rules.tracing.new_shapes import CANDIDATES, Searches, check

ROW = (("conv/Conv2D", 12.0, 1.0),)
KERNELS = (
    "volta_scudnn_128x64_relu_interior_nn_v1", "volta_scudnn_128x128_relu_interior_nn_v1",
    "implicit_convolve_sgemm<float>", "precomputed_convolve_sgemm<float>", "winograd_scudnn_winograd_128x128",
)  # fmt: skip
CONV = {"tf_op": "model/conv/Conv2D:Conv2D"}


def example(
    searches: Searches = Searches(20, 20, 10, (("conv/Conv2D", 12.0, 1.0),)), conv_ms: float = 12.0,
    padding: SequencePadding | None = None,
) -> Verdict:  # fmt: skip
    """Every image has another size: all steps search, and 11 of 12 ms of a convolution are only tried."""
    row = took("conv/Conv2D", "Conv2D", conv_ms)
    operations = training_step(conv_ms + 4.0, row, rest="ReluGrad")
    return check(searches, Breakdown.of(host=2.0, device=conv_ms + 4.0), operations, padding, None)


def searched(kernels: int, steps: range, of: int = 8, **stats: str) -> Searches:
    """Measure a trace in which the convolution runs so many kernels of 1 ms in the given steps, else one."""
    rows = [
        (KERNELS[number], 10.0 * step + number, 10.0 * step + number + 1, CONV | stats)
        for step in range(of)
        for number in range(kernels if step in steps else 1)
    ]
    return chart(trace([markers(of, 10.0)], gpus=[v100(line("Stream #1", *rows))])).fact(Searches)


sick = example
healthy = described("The search was over before the traced steps.", example, Searches(0, 20, 0), 1.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["trap: a first batch"] = [
        example(Searches(steps, 20, late, ROW)) for steps, late in ((2, 1), (1, 1), (5, 0))
    ]
    told["every fifth step has a new shape; others run one kernel"] = example(Searches(4, 20, 2, ROW), conv_ms=1.0)
    told["a compiled step"] = check(Searches(0, 20, 0), Breakdown.of(device=9.0), UNNAMED_WORK, None, None)
    padding = SequencePadding((PaddedInput(200, ((50,) * 31 + (200,),)),))
    told["sequences get the lengths that were recorded, and images no number"] = example(padding=padding)


@golden_cases
def test_searches(told: Cases) -> None:
    told["five kernels in each step: four are only tried, and lost"] = searched(5, range(8))
    told["candidates enough, and one less"] = searched(CANDIDATES, range(8)), searched(CANDIDATES - 1, range(8))
    told["the first two steps"] = searched(5, range(2))
    told["trap: an attention layer of many kernels"] = searched(5, range(8), tf_op="model/attention/Einsum:Einsum")
    told["a run on a CPU"] = lambda: chart(trace([markers(8, 10.0)])).fact(Searches)

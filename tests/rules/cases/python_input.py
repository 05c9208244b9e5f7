"""The cases of python-input: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.input.input_lines import InputLines
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.rules.input.python_input import check


def seen_line(at: Location, seen: int, calls: str = "", *, makes: bool | None = None) -> TimedLine:
    """A line that makes input, with samples of one call."""
    return TimedLine(at, seen, calls={calls: seen}, makes=makes)


LINES = (seen_line(Location("train.py", 14), 45, "PIL.Image.open"), seen_line(Location("train.py", 12), 5))


AUGMENT = dataset_of("Map", id=1, function="augment", at=Location("train.py", 12))


def example(  # noqa: PLR0913 - the facts of both places where batches are made
    *stages: StageTime,
    pipeline: InputPipeline | Unavailable | None = None,
    breakdown: Breakdown | None = None,
    samples: StackSamples | None = None,
    body: LoopBody | None = None,
    conversions: Conversions | None = None,
    lines: InputLines | Unavailable = Unavailable("not sampled"),
    overhead: PythonOverhead | None = None,
    contention: CpuContention | None = None,
) -> Verdict:
    """Judge a pipeline whose map takes 31 ms of each 33 ms step, or other stages."""
    slow = StageTime.of("Root::Prefetch::Map", 31.0, dataset=AUGMENT)
    return check(
        pipeline or InputPipeline.of(StageTime.of("Root::Prefetch"), *(stages or [slow])),
        breakdown or Breakdown.of(input=23.0, device=10.0),
        samples,
        body,
        conversions,
        lines,
        overhead,
        contention,
    )


def sick() -> Verdict:
    """A py_function takes 30 ms of each 33 ms step."""
    slow = StageTime.of("Root::Prefetch::Map", 31.0, python_ms=30.0, dataset=AUGMENT)
    return example(slow, lines=InputLines(LINES))


def healthy() -> Verdict:
    """The same map in TensorFlow operations."""
    return example()

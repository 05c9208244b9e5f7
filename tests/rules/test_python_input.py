"""python-input: the interpreter takes a tenth of what limits a pipeline that is waited for."""

from tests.rules.kit import *
from tfdoctor.facts.input.input_lines import InputLines
from tfdoctor.rules.input import python_input
from tfdoctor.rules.input.python_input import in_place

AUGMENT = dataset_of("Map", id=1, function="augment", at=script(12))
UNSAMPLED = Unavailable("the threads that make input were not sampled")
NO_PIPELINE = Unavailable("no pipeline")
DISTURBED = CpuContention(crowded=True, cores=2.0, others=1.6)
LOAD, SCALE = script(36), script(38)
MAPPED = Dataset(id=1, kind="_MapDataset", function="augment", function_at=LOAD, at=LOAD)


def seen_line(at: Location, seen: int, calls: str = "", *, makes: bool | None = None) -> TimedLine:
    """A line that makes input, with samples of one call."""
    return TimedLine(at, seen, calls={calls: seen}, makes=makes)


def example(  # noqa: PLR0913 - the facts of both places where batches are made
    *stages: StageTime, pipeline: InputPipeline | Unavailable | None = None, breakdown: Breakdown | None = None,
    samples: StackSamples | None = None, body: LoopBody | None = None, conversions: Conversions | None = None,
    lines: InputLines | Unavailable = Unavailable("not sampled"), overhead: PythonOverhead | None = None,
    contention: CpuContention | None = None,
) -> Verdict:  # fmt: skip
    """Judge a pipeline whose map takes 31 ms of each 33 ms step, or other stages."""
    slow = stage_time("Root::Prefetch::Map", 31.0, dataset=AUGMENT)
    made = pipeline or InputPipeline.of(PREFETCH, *(stages or [slow]))
    step = breakdown or Breakdown.of(input=23.0, device=10.0)
    return python_input.check(made, step, samples, body, conversions, lines, overhead, contention)


def sick() -> Verdict:
    """A py_function takes 30 ms of each 33 ms step."""
    slow = stage_time("Root::Prefetch::Map", 31.0, python_ms=30.0, dataset=AUGMENT)
    return example(slow, lines=InputLines(LINES))


def stage(kind: str, work: float, python: float, **more: Any) -> StageTime:
    return stage_time(f"Root::Prefetch::{kind}", work, python_ms=python, **more)


def check(
    *stages: StageTime, wait: float = 30.0, fed_by: str = "", lines: InputLines | Unavailable = UNSAMPLED
) -> Verdict:
    pipeline = InputPipeline.of(PREFETCH, *stages, python_kind=fed_by)
    step = Breakdown.of(input=wait, device=40.0 - wait)
    return example(pipeline=pipeline, breakdown=step, lines=lines)


def waiting(edges: float, **more: Any) -> Verdict:
    """Input that is ready in time, while its Python runs when the loop should start the next step."""
    step = Breakdown.of(input=0.5, host=20.0, device=19.5)
    return example(stage("Map", 38.0, 30.0), breakdown=step, overhead=PythonOverhead(edges, 0.1), **more)


def made_in(body: LoopBody, step: Breakdown, *places: TimedLine, **more: Any) -> Verdict:
    """A loop that makes its batches at these places."""
    samples = StackSamples(places, **({"new_arguments": ((128, 32),)} | more))
    return example(pipeline=NO_PIPELINE, breakdown=step, samples=samples, body=body)


def loop(between: float, makes: int, others: int = 0) -> Verdict:
    places = (TimedLine(script(12), seen, makes=bool(n)) for n, seen in enumerate((others, makes)))
    return made_in(LoopBody(0.0, between), Breakdown.of(between=between, device=20.0 - between), *places)


def converted(ms: float, *, same: bool = False, device: float | None = None) -> Verdict:
    array = Conversions((ConvertedArray("float32", (128, 784), 0.0, ms, same=same),), script(12))
    step = Breakdown.of(between=ms, device=20.0 - ms if device is None else device)
    return example(pipeline=NO_PIPELINE, breakdown=step, conversions=array)


def eager(*calls: str) -> Verdict:
    places = (TimedLine(LOAD, 5, makes=True, calls={call: 5}) for call in calls)
    step = Breakdown.of(between=5.0, device=15.0)
    return made_in(LoopBody(0.0, 5.0), step, *places, function="train_step")


def memory(seen: int, calls: str) -> Verdict:
    """A replay memory that a policy fills; its lines together take a fifth of a step."""
    places = [TimedLine(Location("dqn.py", n), 2, makes=True) for n in range(40, 50)]
    draws = TimedLine(Location("dqn.py", 59), seen, makes=True, calls={calls: seen})
    samples = StackSamples((draws, *places), new_arguments=((48, 36),), models_at=frozenset({LOAD}))
    arrays = Conversions((ConvertedArray("uint8", (48, 36), 0.0, 3.0, same=False),))
    step, body = Breakdown.of(between=6.0, device=14.0), LoopBody(0.0, 6.0)
    return example(pipeline=NO_PIPELINE, breakdown=step, samples=samples, body=body, conversions=arrays)


def named(most: int, others: int, *, calls: str = "numpy.load", certain: bool = True) -> Verdict:
    lines = seen_line(LOAD, most, calls=calls, makes=certain), seen_line(SCALE, others)
    return check(stage("Generator", 40.0, 40.0), lines=InputLines(lines))


def mapped(*lines: TimedLine, **more: Any) -> Verdict:
    """A map whose function is the user's own augment()."""
    return check(stage("Map", 40.0, 40.0, dataset=replace(MAPPED, **more)), lines=InputLines(lines))


LINES = (seen_line(script(14), 45, "PIL.Image.open"), seen_line(script(12), 5))
healthy = described("The same map in TensorFlow operations.", example)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a tenth of the slowest segment, less, and none"] = [check(stage("Map", 40.0, one)) for one in (4, 3.9, 0)]
    told["a step that waits 5 % of its time, and less"] = check(stage("Map", 40.0, 38.0), wait=2.0)
    told[...] = check(stage("Map", 40.0, 38.0), wait=1.9)
    slow = stage_time("Root::Prefetch::ParallelMapV2", 90.0, threads=2)
    beside = stage_time(f"{slow.path}::Generator", 10.0, python_ms=10.0)
    told["a generator that keeps up with a slow map"] = check(slow, beside)
    told["no stage at all"] = check()
    crowded = stage("Map", 40.0, 15.0, operations={"PyFunc": 15.0, "Roll": 5.0})
    told["replacing the Python leaves the rest of the stage"] = check(stage("Map", 40.0, 30.0))
    told["waits for a core between operations go with it: they were saved"] = check(crowded)
    steps = Breakdown.of(input=20.0, host=8.0, device=12.0)
    told["the loop waits for the interpreter's lock, unseen"] = example(stage("Map", 40.0, 30.0), breakdown=steps)
    inside = InputPipeline.of(stage_time("Root::Map", 40.0, python_ms=30.0))
    told["a pipeline without prefetch does not run beside the loop"] = example(pipeline=inside, breakdown=steps)
    told["a loop that waits for the interpreter alone, and less"] = [waiting(edges) for edges in (8.0, 6.9, 1.0)]
    told["a loop that may wait for a core instead of the interpreter"] = waiting(8.0, contention=DISTURBED)
    step = Breakdown.of(input=30.0, device=10.0)
    told["a wait that other programs may cause is not put on Python, unless it is more than half of the stage"] = [
        example(stage("Map", work, 10.0), breakdown=step, contention=DISTURBED) for work in (15.0, 14.9)
    ]
    alone = CpuContention(crowded=True, cores=2.0)
    told["cores that the program crowds"] = example(stage("Map", 14.9, 10.0), breakdown=step, contention=alone)
    told["a generator"] = check(stage("Generator", 40.0, 40.0))
    told["a dataset made from a generator"] = check(stage("FlatMap", 40.0, 40.0), fed_by="generator")
    told["a PyDataset"] = check(stage("Generator", 40.0, 40.0), fed_by="PyDataset")
    told["a generator and a map behind it are one change"] = check(
        stage("Generator", 20.0, 20.0), stage("Generator::Map", 20.0, 19.0, dataset=MAPPED)
    )


@golden_cases
def test_loops(told: Cases) -> None:
    told["a loop that makes its batches"] = loop(10.0, 9)
    told["a twentieth of the step, and less"] = loop(1.08, 5), loop(1.06, 5)
    told["half of the samples are of what makes batches"] = loop(2.16, 5, 5), loop(2.12, 5, 5)
    told["four samples are too few"] = loop(9.0, 4)
    made = TimedLine(script(12), 9, makes=True)
    told["a batch made in a loop's body"] = made_in(LoopBody(4.0, 0.0), Breakdown.of(host=5.0, device=15.0), made)
    told["slices of an array cost nothing to make, and much to convert"] = converted(1.08), converted(1.06)
    told["arrays that are the same each time are left to repeated-conversion"] = converted(5.0, same=True)
    array = Conversions((ConvertedArray("float32", (32, 96), 0.0, 0.05, same=False),), script(12))
    told["trap: a replay buffer's arrays took 0.05 ms of a step of 0.7 ms, and tf.data would take as long"] = (
        example(pipeline=NO_PIPELINE, breakdown=Breakdown.of(between=0.43, device=0.27), conversions=array)
    )
    told["a batch from tf.data takes 0.05 of 1.4 ms"] = converted(1.4)


@golden_cases
def test_what_a_loop_calls(told: Cases) -> None:
    told["trap: no pipeline is proposed for what the loop's model decides"] = memory(9, "")
    told["a line of such a loop takes half of it"] = memory(10, "")
    for calls in ("numpy.random.choice", "random.Random.sample"):
        told[f"a line of such a loop calls {calls}"] = memory(10, calls)
    told["an operation of TensorFlow moves into the function"] = eager("tensorflow.random.uniform")
    told["half of the time: two calls of a line are two rows"] = eager("tensorflow.random.uniform", "numpy.stack")
    told["a constant does not move"] = eager("tensorflow.constant")
    told["a call does not move"] = eager("tensorflow.python.eager.polymorphic_function.Function.__call__")
    told["the code is of the function that is called"] = eager("numpy.std")
    told["no code is known for this function"] = eager("pandas.concat")
    for draw in ("choice", "permutation"):
        for others, half in ((1, "at least half"), (2, "less than half")):
            called = [f"numpy.random.{draw}", *["numpy.stack"] * others]
            places = (TimedLine(Location("t.py", n), 5, makes=True, calls={c: 5}) for n, c in enumerate(called))
            told[f"a {draw} permutes all examples, and is {half} of what makes a batch"] = made_in(
                LoopBody(0.0, 5.0), Breakdown.of(between=5.0, device=15.0), *places
            )


@golden_cases
def test_lines(told: Cases) -> None:
    convolve = partial(seen_line, calls="numpy.convolve")
    both = convolve(LOAD, 25), convolve(SCALE, 24), seen_line(Location("other.py", 1), 1)
    told["two lines that call the same function are named, and the code shows what replaces it"] = mapped(*both)
    told["a line of another file"] = mapped(convolve(Location("other.py", 7), 9))
    for calls in ("", "lzma.decompress"):
        told[f"code for an unknown function ({calls or 'Python'}) is a general shape, and calls the user's"] = (
            mapped(seen_line(SCALE, 9, calls=calls))
        )
    told["a function without a name is called by its stage"] = mapped(function="<lambda>")
    slow, quick = seen_line(LOAD, 19, calls="numpy.load"), seen_line(SCALE, 2, calls="numpy.clip")
    told["a function that takes little gets no example"] = mapped(slow, quick)
    told["some are shown, others summed up"] = mapped(*(seen_line(script(number), 10) for number in range(1, 11)))
    told["a line is named where enough samples show it"] = [named(*seen) for seen in ((71, 29), (30, 70), (4, 0))]
    told["a line takes 90 %"] = named(9, 1)
    others = [seen_line(script(number), 7) for number in range(1, 10)]
    for most, name in ((30, "stands out"), (29, "does not stand out")):
        rest = (seen_line(script(10), 17 - most), seen_line(LOAD, 20))
        told[f"a function that {name} among lines"] = mapped(seen_line(SCALE, most, "numpy.load"), *others, *rest)
    told["a line of a thread that may do something else is shown only"] = named(9, 1, certain=False)
    for calls in ("numpy.convolve", "numpy.core.numeric.convolve", "scipy.signal.convolve"):
        told[f"code in place of {calls}"] = in_place([(calls, 1.0)])
    counts = [("numpy.clip", 3), ("numpy.std", 2), ("numpy.std", 4), ("numpy.roll", 0.9), ("", 0.1)]
    told["the function that takes most comes first, and none that takes little"] = in_place(counts)
    told["Python of its own is not called a function"] = named(9, 1, calls="")


# Threads of the input on crowded cores
def crowded(threads: float, wait: float = 0.0, *, cores: bool = True) -> Verdict:
    """Threads run librosa beside a step of 64 ms on two cores."""
    lines = (seen_line(script(35), 33, calls="librosa.feature.melspectrogram"),)
    contention = CpuContention(cores, cores=2.0, compute_ms=40.0, beside=1.0 - wait / 64.0)
    made = stage_time("Root::FlatMap::Generator", wait, python_ms=wait)
    pipeline = InputPipeline.of(made, python_kind=InputKind.PY_DATASET)
    step = Breakdown.of(input=wait, host=24.0 - wait, device=40.0)
    return example(pipeline=pipeline, breakdown=step, lines=InputLines(lines, threads), contention=contention)


@golden_cases
def test_crowded_cores(told: Cases) -> None:
    told["threads of the input take a tenth of the step, and less"] = crowded(0.201), crowded(0.199)
    told["the compute may gain half of what two cores lose"] = crowded(0.44)
    told["cores that are not crowded"] = crowded(2.0, cores=False)
    told["less work is proposed where cores are crowded"] = crowded(0.0, wait=16.0)
    told["more processes are proposed where cores are free"] = crowded(0.0, wait=16.0, cores=False)
    told["a longer wait is told instead: it is what is measured"] = crowded(0.44, wait=16.0)
    told["a shorter wait is not"] = crowded(0.44, wait=8.0)

"""python-input: the interpreter takes a tenth of what limits a pipeline that is waited for."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.kit import *
from tfdoctor.facts.input.input_lines import InputLines
from tfdoctor.rules.input import python_input
from tfdoctor.rules.input.python_input import DRAW, Limits, in_place
from tfdoctor.terms.kinds import InputKind


def seen_line(at: Location, seen: int, calls: str = "", *, makes: bool | None = None) -> TimedLine:
    """A line that makes input, with samples of one call."""
    return TimedLine(at, seen, calls={calls: seen}, makes=makes)


LINES = (seen_line(Location("train.py", 14), 45, "PIL.Image.open"), seen_line(Location("train.py", 12), 5))


AUGMENT = dataset_of("Map", id=1, function="augment", at=Location("train.py", 12))


def example(  # noqa: PLR0913 - the facts of both places where batches are made
    *stages: StageTime, pipeline: InputPipeline | Unavailable | None = None, breakdown: Breakdown | None = None,
    samples: StackSamples | None = None, body: LoopBody | None = None, conversions: Conversions | None = None,
    lines: InputLines | Unavailable = Unavailable("not sampled"), overhead: PythonOverhead | None = None,
    contention: CpuContention | None = None,
) -> Verdict:  # fmt: skip
    """Judge a pipeline whose map takes 31 ms of each 33 ms step, or other stages."""
    slow = StageTime.of("Root::Prefetch::Map", 31.0, dataset=AUGMENT)
    return python_input.check(
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


UNSAMPLED = Unavailable("the threads that make input were not sampled")
NO_PIPELINE = Unavailable("no pipeline")


def stage(kind: str, work: float, python: float, **more: Any) -> StageTime:
    return StageTime.of(f"Root::Prefetch::{kind}", work, python_ms=python, **more)


def check(
    *stages: StageTime, wait: float = 30.0, fed_by: str = "", lines: InputLines | Unavailable = UNSAMPLED
) -> Verdict:
    pipeline = InputPipeline.of(StageTime.of("Root::Prefetch"), *stages, python_kind=fed_by)
    step = Breakdown.of(input=wait, device=40.0 - wait)
    return example(pipeline=pipeline, breakdown=step, lines=lines)


def waiting(edges: float, **more: Any) -> Verdict:
    """Input that is ready in time, while its Python runs when the loop should start the next step."""
    step = Breakdown.of(input=0.5, host=20.0, device=19.5)
    return example(stage("Map", 38.0, 30.0), breakdown=step, overhead=PythonOverhead(edges, 0.1), **more)


def test_a_loop_that_waits_for_the_interpreter() -> None:
    assert kinds(waiting(6.9), waiting(1.0)) == [Healthy, Healthy]
    assert [of for part, of, _, _ in effects(waiting(8.0)) if part is Stage.HOST] == [5.0]


DISTURBED = CpuContention(crowded=True, cores=2.0, others=1.6)


def test_a_loop_that_may_wait_for_a_core_is_not_said_to_wait_for_the_interpreter() -> None:
    reason = as_not_applicable(waiting(8.0, contention=DISTURBED)).reason
    assert "other programs used 1.6 cores while none was free" in reason


def test_a_wait_that_other_programs_may_cause_is_not_put_on_python() -> None:
    cases = (15.0, DISTURBED), (14.9, DISTURBED), (14.9, CpuContention(crowded=True, cores=2.0))
    step = Breakdown.of(input=30.0, device=10.0)
    found = [example(stage("Map", work, 10.0), breakdown=step, contention=other) for work, other in cases]
    assert kinds(*found) == [Finding, NotApplicable, Finding]


def test_a_tenth_of_the_slowest_segment_of_a_step_that_waits() -> None:
    assert kinds(*(check(stage("Map", 40.0, one)) for one in (4.0, 3.9, 0.0))) == [Finding, Healthy, Healthy]
    assert kinds(*(check(stage("Map", 40.0, 38.0), wait=wait) for wait in (2.0, 1.9))) == [Finding, Healthy]
    slow = StageTime.of("Root::Prefetch::ParallelMapV2", 90.0, threads=2)
    beside = StageTime.of(f"{slow.path}::Generator", 10.0, python_ms=10.0)  # keeps up
    assert kinds(check(slow, beside), check()) == [Healthy, Healthy]


def test_replacing_the_python_leaves_the_rest_of_the_stage() -> None:
    """Waits for a core between operations go with it: the ceiling was exceeded by the change itself."""
    crowded = stage("Map", 40.0, 15.0, operations={"PyFunc": 15.0, "Roll": 5.0})
    for one in (stage("Map", 40.0, 30.0), crowded):
        assert scales(check(one)) == {"Root::Prefetch::Map": near(0.25)}
        assert {bound for *_, bound in effects(check(one))} == {Bound.AT_MOST}


def test_the_training_loop_gains_from_less_python_in_the_pipeline() -> None:
    """The loop waits for the interpreter's lock while the pipeline runs Python; no event shows this."""
    steps = Breakdown.of(input=20.0, host=8.0, device=12.0)
    (host,) = (one for one in effects(example(stage("Map", 40.0, 30.0), breakdown=steps)) if one[0] is Stage.HOST)
    assert host == (Stage.HOST, 8.0, near(0.25), Bound.AT_MOST)  # 30 of 40 ms
    inside = InputPipeline.of(StageTime.of("Root::Map", 40.0, python_ms=30.0))
    assert {one[0] for one in effects(example(pipeline=inside, breakdown=steps))} == {Stage.INPUT}


def test_the_remedy_follows_what_makes_the_batches() -> None:
    for kind, fed_by, words in (
        ("Map", "", "TensorFlow operations"),
        ("Generator", "", "generator"),
        ("FlatMap", "generator", "generator"),
        ("Generator", "PyDataset", "processes"),
    ):
        assert words in first_action(check(stage(kind, 40.0, 40.0), fed_by=fed_by))


def made_in(body: LoopBody, step: Breakdown, *places: TimedLine, **more: Any) -> Verdict:
    """A loop that makes its batches at these places."""
    samples = StackSamples(places, **({"new_arguments": ((128, 32),)} | more))
    return example(pipeline=NO_PIPELINE, breakdown=step, samples=samples, body=body)


def loop(between: float, makes: int, others: int = 0) -> Verdict:
    places = (TimedLine(Location("train.py", 12), seen, makes=bool(n)) for n, seen in enumerate((others, makes)))
    return made_in(LoopBody(0.0, between), Breakdown.of(between=between, device=20.0 - between), *places)


def test_a_loop_that_makes_its_batches() -> None:
    assert kinds(loop(1.08, 5), loop(1.06, 5), loop(9.0, 4)) == [Finding, Healthy, NotApplicable]
    assert kinds(loop(2.12, 5, 5), loop(2.16, 5, 5)) == [Healthy, Finding]
    verdict = as_finding(loop(10.0, 9))
    assert (verdict.remedies[0].at, verdict.effects[0].bound) == (Location("train.py", 12), Bound.AT_MOST)


def test_a_batch_made_in_the_body_of_a_loop_over_a_dataset_is_host_time() -> None:
    made = TimedLine(Location("train.py", 12), 9, makes=True)
    ((part, of, _, _),) = effects(made_in(LoopBody(4.0, 0.0), Breakdown.of(host=5.0, device=15.0), made))
    assert (part, of) == (Stage.HOST, near(4.0))


@pytest.mark.parametrize(
    ("seen", "calls", "action"),
    [
        (9, "", ""),
        (10, "", "Replace loops over examples with NumPy operations on whole batches"),
        (10, "numpy.random.choice", DRAW),
        (10, "random.Random.sample", "Call random.Random.sample less often for each batch"),
    ],
)
def test_no_pipeline_is_proposed_for_what_the_loop_s_model_decides(seen: int, calls: str, action: str) -> None:
    """Trap: a replay memory that a policy fills; its lines together take a fifth of a step."""
    places = [TimedLine(Location("dqn.py", n), 2, makes=True) for n in range(40, 50)]
    draws = TimedLine(Location("dqn.py", 59), seen, makes=True, calls={calls: seen})
    verdict = example(
        pipeline=NO_PIPELINE,
        breakdown=Breakdown.of(between=6.0, device=14.0),
        samples=StackSamples((draws, *places), new_arguments=((48, 36),), models_at=frozenset({LOAD})),
        body=LoopBody(0.0, 6.0),
        conversions=Conversions((ConvertedArray("uint8", (48, 36), 0.0, 3.0, same=False),)),
    )
    assert [one.action for one in getattr(verdict, "remedies", ())] == [action] * bool(action)
    if isinstance(verdict, Finding):
        assert "dqn.py:59 takes 2.00 ms" in verdict.summary


def converted(ms: float, *, same: bool = False, device: float | None = None) -> Verdict:
    array = Conversions((ConvertedArray("float32", (128, 784), 0.0, ms, same=same),), Location("train.py", 12))
    step = Breakdown.of(between=ms, device=20.0 - ms if device is None else device)
    return example(pipeline=NO_PIPELINE, breakdown=step, conversions=array)


def test_converting_new_arrays_is_making_a_batch() -> None:
    """Slices of an array cost nothing to make, and much to convert."""
    assert kinds(converted(1.08), converted(1.06)) == [Finding, Healthy]
    assert isinstance(converted(5.0, same=True), NotApplicable)  # left to repeated-conversion


def test_small_arrays_cost_no_more_than_a_batch_from_tf_data() -> None:
    """Trap: a replay buffer's arrays took 0.05 ms of a step of 0.7 ms, and tf.data would have taken as long."""
    array = Conversions((ConvertedArray("float32", (32, 96), 0.0, 0.05, same=False),), Location("train.py", 12))
    step = Breakdown.of(between=0.43, device=0.27)
    assert isinstance(example(pipeline=NO_PIPELINE, breakdown=step, conversions=array), Healthy)
    assert [left for _, _, left, _ in effects(converted(1.4))] == [near(0.05)]


LOAD, SCALE = Location("train.py", 36), Location("train.py", 38)
MAPPED = Dataset(id=1, kind="_MapDataset", function="augment", function_at=LOAD, at=LOAD)


def named(most: int, others: int, *, calls: str = "numpy.load", certain: bool = True) -> Finding:
    lines = seen_line(LOAD, most, calls=calls, makes=certain), seen_line(SCALE, others)
    return as_finding(check(stage("Generator", 40.0, 40.0), lines=InputLines(lines)))


def mapped(*lines: TimedLine, **more: Any) -> Finding:
    """A map whose function is the user's own augment()."""
    return as_finding(check(stage("Map", 40.0, 40.0, dataset=replace(MAPPED, **more)), lines=InputLines(lines)))


def test_the_first_change_is_of_all_that_the_saving_counts() -> None:
    """Two lines that call the same function are both named; the code shows what replaces that function."""
    both = seen_line(LOAD, 25, calls="numpy.convolve"), seen_line(SCALE, 24, calls="numpy.convolve")
    first, rarely = mapped(*both, seen_line(Location("other.py", 1), 1)).remedies
    assert first.action == (
        "Write augment() in TensorFlow operations: numpy.convolve takes 98 % of the input's Python "
        "(50 % in line 36, 48 % in line 38)"
    )
    assert all(code in first.code for code in ("tf.nn.conv1d", "dataset.map(augment"))
    assert "numpy.convolve less often" in rarely.action
    assert first.at == rarely.at == LOAD
    other = seen_line(Location("other.py", 7), 9, calls="numpy.convolve")
    assert first_action(mapped(other)).endswith("(other.py:7)")


@pytest.mark.parametrize("calls", ["", "lzma.decompress"])
def test_code_for_an_unknown_function_is_a_general_shape(calls: str) -> None:
    """It calls the user's function, and none of TensorFlow's for something else."""
    first, _, processes = mapped(seen_line(SCALE, 9, calls=calls)).remedies
    assert "def augment(" in first.code
    assert "dataset.map(augment" in first.code
    assert set(re.findall(r"tf\.[\w.]+", first.code)) <= {"tf.py_function", "tf.numpy_function", "tf.data.AUTOTUNE"}
    assert "use_multiprocessing" in processes.code


def test_a_function_without_a_name_is_called_by_its_stage() -> None:
    assert "Write Map(<lambda>) in" in first_action(mapped(function="<lambda>"))


def test_a_function_that_takes_little_gets_no_example() -> None:
    slow, quick = seen_line(LOAD, 19, calls="numpy.load"), seen_line(SCALE, 2, calls="numpy.clip")
    assert "clip" not in first_code(mapped(slow, quick))


def test_a_generator_and_a_map_behind_it_are_one_change() -> None:
    both = check(stage("Generator", 20.0, 20.0), stage("Generator::Map", 20.0, 19.0, dataset=MAPPED))
    assert [one.action for one in as_finding(both).remedies][:-1] == [
        "Read with tf.data instead of a generator and write augment() in TensorFlow operations"
    ]


def rows_of(finding: Finding) -> tuple[tuple[object, ...], ...]:
    table = finding.evidence[-1]
    assert isinstance(table, Table)
    return table.rows


def test_the_lines_that_take_the_time_are_shown_and_the_others_summed_up() -> None:
    rows = rows_of(mapped(*(seen_line(Location("train.py", number), 10) for number in range(1, 11))))
    assert (len(rows), rows[-1]) == (9, ("other lines", "-", "-", ratio(0.2), ms(8.0)))
    verdict = named(9, 1)
    assert "numpy.load takes 90 %" in verdict.remedies[0].action
    assert verdict.remedies[1].at == LOAD
    assert rows_of(verdict)[0] == (LOAD, "-", "numpy.load", ratio(0.9), ms(36.0))


def test_a_line_is_named_where_enough_samples_show_it() -> None:
    assert [named(*seen).remedies[1].at for seen in ((71, 29), (30, 70), (4, 0))] == [LOAD, SCALE, None]


def test_a_function_is_named_where_it_stands_out() -> None:
    others = [seen_line(Location("train.py", number), 7) for number in range(1, 10)]
    for most, stands_out in ((30, True), (29, False)):
        rest = (seen_line(Location("train.py", 10), 17 - most), seen_line(LOAD, 20))
        action = first_action(mapped(seen_line(SCALE, most, calls="numpy.load"), *others, *rest))
        assert ("numpy.load" in action) is stands_out


def test_a_line_of_a_thread_that_may_do_something_else_is_shown_only() -> None:
    verdict = named(9, 1, certain=False)
    assert "train.py" not in verdict.remedies[0].action
    assert LOAD in rows_of(verdict)[0]


def test_python_of_its_own_is_not_called_a_function() -> None:
    action, rarely = (remedy.action for remedy in named(9, 1, calls="").remedies[:2])
    assert action.endswith(": train.py:36 takes 90 % of the input's Python")
    assert "replace loops over examples" in rarely


def test_lines_that_were_not_sampled_are_said_to_be_unknown() -> None:
    assert str(UNSAMPLED) in str(as_finding(check(stage("Generator", 40.0, 40.0))).evidence[-1])


def eager(*calls: str) -> Finding:
    places = (TimedLine(LOAD, 5, makes=True, calls={call: 5}) for call in calls)
    step = Breakdown.of(between=5.0, device=15.0)
    return as_finding(made_in(LoopBody(0.0, 5.0), step, *places, function="train_step"))


def test_operations_of_tensorflow_move_into_the_function() -> None:
    for calls, moves in (
        (("tensorflow.random.uniform",), True),
        (("tensorflow.random.uniform", "numpy.stack"), False),  # half of the time
        (("tensorflow.constant",), False),
        (("tensorflow.python.eager.polymorphic_function.Function.__call__",), False),
    ):
        (remedy,) = eager(*calls).remedies
        assert remedy.at == LOAD
        assert ("tf.random.uniform inside train_step" in remedy.action) is moves
        assert ("x = tf.random.uniform(" in remedy.code, "def train_step(" in remedy.code) == (moves, moves)


@pytest.mark.parametrize("draw", ["choice", "permutation"])
def test_a_draw_that_permutes_all_examples_has_a_cheaper_form(draw: str) -> None:
    """It is proposed where it is at least half of what makes a batch."""
    step = Breakdown.of(between=5.0, device=15.0)
    for others in (1, 2):
        calls = [f"numpy.random.{draw}", *["numpy.stack"] * others]
        places = (TimedLine(Location("t.py", n), 5, makes=True, calls={c: 5}) for n, c in enumerate(calls))
        assert (first_action(made_in(LoopBody(0.0, 5.0), step, *places)) == DRAW) is (others == 1)


def test_the_code_for_a_batch_made_in_the_loop_is_of_the_functions_that_it_calls() -> None:
    (remedy,), (other,) = eager("numpy.std").remedies, eager("pandas.concat").remedies
    assert "tf.math.reduce_std" in remedy.code
    assert "in place of" not in other.code


def test_places_of_one_line_are_one_row() -> None:
    assert rows_of(eager("numpy.stack", "numpy.load")) == ((LOAD, "numpy.stack", ms(5.0)),)


# Threads of the input on crowded cores


def crowded(threads: float, wait: float = 0.0, *, cores: bool = True) -> Verdict:
    """Threads run librosa beside a step of 64 ms on two cores."""
    lines = (seen_line(Location("train.py", 35), 33, calls="librosa.feature.melspectrogram"),)
    contention = CpuContention(cores, cores=2.0, compute_ms=40.0, beside=1.0 - wait / 64.0)
    made = StageTime.of("Root::FlatMap::Generator", wait, python_ms=wait)
    return example(
        pipeline=InputPipeline.of(made, python_kind=InputKind.PY_DATASET),
        breakdown=Breakdown.of(input=wait, host=24.0 - wait, device=40.0),
        lines=InputLines(lines, threads),
        contention=contention,
    )


def test_a_tenth_of_the_step_taken_by_threads_of_the_input_is_found() -> None:
    assert Limits().crowding == 0.1
    assert kinds(crowded(0.201), crowded(0.199)) == [Finding, Healthy]


def test_the_compute_may_gain_half_of_what_two_cores_lose() -> None:
    finding = as_finding(crowded(0.44))
    assert effects(finding) == [(Stage.DEVICE, 40.0, near(1.0 - 0.44 * 64.0 / 2 / 40.0), Bound.AT_MOST)]
    assert finding.remedies[0].at == Location("train.py", 35)
    assert "librosa" in finding.remedies[0].action
    assert isinstance(crowded(2.0, cores=False), Healthy)


def test_more_processes_are_proposed_where_cores_are_free() -> None:
    assert "Compute once" in first_action(crowded(0.0, wait=16.0))
    assert "several processes" in first_action(crowded(0.0, wait=16.0, cores=False))


def test_a_longer_wait_is_told_instead() -> None:
    """Processes or less work help there, and the wait is what is measured."""
    assert "makes the step wait" in as_finding(crowded(0.44, wait=16.0)).summary
    assert "while no core is free" in as_finding(crowded(0.44, wait=8.0)).summary


# What replaces Python in the input: each expression runs, and its result is that of what it replaces.


SCRIPT = Path(__file__).parent / "python_input" / "run_equivalents.py"


def test_the_modules_between_package_and_function_do_not_count() -> None:
    (offered,) = in_place([("numpy.convolve", 1.0)])
    assert in_place([("numpy.core.numeric.convolve", 1.0)]) == (offered,)
    assert in_place([("scipy.signal.convolve", 1.0), ("", 1.0)]) == ()


def test_the_function_that_takes_most_comes_first_and_none_that_takes_little() -> None:
    found = in_place([("numpy.clip", 3), ("numpy.std", 2), ("numpy.std", 4), ("numpy.roll", 0.9), ("", 0.1)])
    assert [code.removeprefix("# in place of ").partition("(")[0] for code in found] == ["numpy.std", "numpy.clip"]


@pytest.mark.tensorflow
def test_the_results_are_equal(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "numpy.convolve" in done.stdout

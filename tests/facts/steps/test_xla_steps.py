"""Which of XLA's programs is the training step."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from tests.builders import PS, Machine, Stats, chart, device, line, trace
from tests.facts.test_jax import calls, gpu_work, marked
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.run.xla_programs import changes_weights, takes_gradients
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.xla_steps import TimedProgram, compiled_steps
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import StepSource
from tfdoctor.trace import xplane

TRAINS = {"tf_op": "jit(f)/transpose(jvp(dense))/dot_general:", "hlo_category": "convolution fusion"}
APPLIES = {"tf_op": "jit(f)/adam/sub:", "hlo_category": "loop fusion"}
LOGS = {"tf_op": "jit(f)/reduce_sum:", "hlo_category": "loop fusion"}


def rhythm(
    name: str, starts: list[float], *, gradients: bool = True, trains: bool = True, each: float = 1.0
) -> TimedProgram:
    begin = np.array([round(s * PS) for s in starts], np.int64)
    return TimedProgram(name, begin, begin + round(each * PS), gradients, trains)


def every(count: int, each: float, first: float = 0.0) -> list[float]:
    return [first + n * each for n in range(count)]


def test_the_program_that_takes_gradients_is_the_step() -> None:
    name, steps = compiled_steps(
        [rhythm("log", every(50, 2), gradients=False), rhythm("train", every(10, 10))], "run"
    )
    assert (name, len(steps)) == ("train", 10)
    assert {step.total_ms for step in steps[:-1]} == {10.0}


def test_gradients_and_their_update_in_turn_are_one_step() -> None:
    name, steps = compiled_steps(
        [rhythm("grads", every(10, 10), trains=False), rhythm("apply_update", every(10, 10, 5), gradients=False)],
        "run",
    )
    assert (name, len(steps)) == ("apply_update", 10)


def test_of_accumulated_gradients_the_update_is_the_step() -> None:
    name, steps = compiled_steps(
        [rhythm("grads", every(40, 10), trains=False), rhythm("apply_update", every(10, 40, 35), gradients=False)],
        "run",
    )
    assert (name, len(steps)) == ("apply_update", 10)
    assert steps[0].total_ms == 40.0


def test_a_log_every_few_steps_is_no_step() -> None:
    name, steps = compiled_steps(
        [rhythm("train", every(40, 10)), rhythm("log", every(10, 40, 35), gradients=False)], "run"
    )
    assert (name, len(steps)) == ("train", 40)


def test_two_that_train_in_turn_are_one_step() -> None:
    name, steps = compiled_steps(
        [rhythm("generator", every(10, 10), each=4), rhythm("critic", every(10, 10, 5))], "run"
    )
    assert (name, len(steps)) == ("generator", 10)


def test_two_that_train_one_after_the_other_are_not_decided() -> None:
    with pytest.raises(Unavailable, match="both compute gradients"):
        compiled_steps([rhythm("a", every(10, 10)), rhythm("b", every(9, 10, 200))], "run")


def test_gradients_alone_are_no_training_step() -> None:
    with pytest.raises(Unavailable, match="the trace does not show that it changes weights"):
        compiled_steps([rhythm("loss", every(10, 10), trains=False)], "run")


def test_too_few_runs_are_no_rhythm() -> None:
    with pytest.raises(Unavailable, match="only three runs"):
        compiled_steps([rhythm("train", every(3, 10))], "run")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("jit(f)/transpose(jvp(dense))/dot_general", True),
        ("gradient_tape/dense/MatMul", True),
        ("aten__convolution_backward", True),
        ("jit(transpose)/transpose", False),
        ("jit(f)/jit(main)/add", False),
    ],
)
def test_the_names_of_backward_passes(name: str, *, expected: bool) -> None:
    assert takes_gradients([name]) is expected


@pytest.mark.parametrize(
    ("module", "names", "donates", "expected"),
    [
        ("f", [], True, True),
        ("train_step", [], False, True),
        ("f", ["jit(f)/adam/sub"], False, True),
        ("f", ["adam/AssignSubVariableOp:AssignSubVariableOp"], False, True),
        ("loss_fn", ["jit(loss_fn)/sub"], False, False),
    ],
)
def test_what_changes_weights(module: str, names: list[str], *, donates: bool, expected: bool) -> None:
    assert changes_weights(module, names, donates=donates) is expected


def tpu(*modules: tuple[str, float, float], category: dict[str, Stats]) -> Machine:
    """A core whose programs each run one operation from start to end."""
    runs = [(f"jit_{name}({number_of(name)})", start, end) for name, start, end in modules]
    ops = [(f"%{name} = f32[8,128] fusion()", start, end) for name, start, end in modules]
    kinds = {
        f"%{name} = f32[8,128] fusion()": {**category[name], "program_id": number_of(name)}
        for name, _, _ in modules
    }
    return device(line("XLA Modules", *runs), line("XLA Ops", *ops), kinds=kinds)


def number_of(name: str) -> int:
    return sum(name.encode())


def test_runs_on_a_tpu_that_nobody_marked() -> None:
    rows = [("f", n * 10.0, n * 10.0 + 8) for n in range(6)]
    rows += [("log", n * 10.0 + 8, n * 10.0 + 9) for n in range(6)]
    core = tpu(*rows, category={"f": {**TRAINS}, "log": LOGS})
    calls = line("python", ("PjitFunction(train_f)", 0, 1))
    with pytest.raises(Unavailable, match="changes weights"):
        chart(trace([calls], tpus=[core])).fact(Steps)
    core = tpu(*[("train", a, b) for _, a, b in rows[:6]], *rows[6:], category={"train": TRAINS, "log": LOGS})
    steps = chart(trace([calls], tpus=[core])).fact(Steps)
    assert (steps.source, steps.program, steps.count) == ("module-runs", "jit_train", 6)
    assert steps.median_ms == pytest.approx(10.0)


TRACES = Path(__file__).parents[1] / "traces"

TIMED_MS = {
    "jax-h100-convnet-float32": 8.79,
    "jax-h100-convnet-bfloat16": 3.89,
    "jax-h100-mlp-bfloat16-4001": 17.34,
}


@pytest.fixture(params=TIMED_MS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def charted(name: str, folder: Path) -> Chart:
    data = gzip.decompress((TRACES / f"{name}.xplane.pb.gz").read_bytes())
    (folder / "host.xplane.pb").write_bytes(data)
    opened = Recording.open(folder)
    return Chart([xplane.read(opened.traces[0]), opened])


def test_a_host_that_runs_ahead_leaves_the_runs_on_the_gpu_as_steps(name: str, tmp_path: Path) -> None:
    steps = charted(name, tmp_path).fact(Steps)

    assert (steps.source, steps.program, steps.count) == (StepSource.XLA_RUNS, "train_step", 12)
    assert steps.median_ms == pytest.approx(TIMED_MS[name], rel=0.03)


def test_their_time_is_the_devices(name: str, tmp_path: Path) -> None:
    parts = charted(name, tmp_path).fact(Breakdown)

    assert parts["device"] > 0.95 * parts.step_ms


def test_kernels_that_no_run_has_exactly_once_mark_no_step() -> None:
    host = line("python", *marked(6, 1, 0.9, "train"), *calls(6, 1, 0.5))
    with pytest.raises(Unavailable, match="ran ahead of the device"):
        chart(trace([host], gpus=[gpu_work(6, 10)])).fact(Steps)

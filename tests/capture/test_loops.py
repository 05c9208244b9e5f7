"""Which loop is the training loop, decided without TensorFlow."""

from tests.capture.kit import *
from tests.capture.windows import make, source


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return make(tmp_path, monkeypatch)


class Batches:
    def __init__(self, data: str) -> None:
        self.data = data


def passes(window: Any, *datasets: tuple[str, int, bool, bool]) -> int:
    """Go over datasets of so many batches, which train or not, and are exhausted or left; return the steps seen."""
    loops = agent.load("loops").TrainingLoops(window)
    for data, batches, trains, exhausts in datasets:
        iterator = Batches(data)
        for _ in range(batches):
            loops.before(iterator)
            if trains:
                loops.training()
        if exhausts:
            loops.before(iterator)
            loops.ended(id(iterator))
        del iterator
    assert window.log.errors == []
    return int(source(window, "tf-data-loop").seen)


@pytest.mark.parametrize(
    ("datasets", "seen", "discarded"),
    [
        ([("train", 12, True, True), ("valid", 5, False, True)] * 3, 36, [12, 25]),  # epochs are one training
        ([("vocabulary", 50, False, True)], 0, None),  # never trains
        ([("train", 5, True, False)] * 4, 20, []),  # a loop that is left ends with its iterator
        ([("train", 15, True, True), ("train", 15, False, True)], 15, [15, 16]),  # evaluation is taken back
    ],
)
def test_which_loop_over_data_trains(window: Any, datasets: Any, seen: int, discarded: list[int] | None) -> None:
    assert passes(window, *datasets) == seen
    capture = window.kept or window.capture
    assert (None if capture is None else capture.discarded) == discarded
    assert capture is None or capture.record["first_step"] == 10


def test_the_outer_iterator_wins(window: Any) -> None:
    loops = agent.load("loops").TrainingLoops(window)
    outer, inner = Batches("labelled"), Batches("unlabelled")
    for _ in range(8):
        loops.before(outer)
        loops.before(inner)
        loops.training()
    assert source(window, "tf-data-loop").seen == 8


def test_a_look_at_a_batch_does_not_count(window: Any) -> None:
    loops, peek, data = agent.load("loops").TrainingLoops(window), Batches("train"), Batches("train")
    loops.before(peek)
    for _ in range(6):
        loops.before(data)
        loops.training()
    assert source(window, "tf-data-loop").seen == 6


@pytest.mark.parametrize(("batches", "first"), [(100, 10), (30, 10), (25, 5), (8, 1)])
def test_the_dataset_says_how_much_is_to_come(window: Any, batches: int, first: int) -> None:
    window.registry.lengths["train"] = batches
    passes(window, ("train", batches, True, True))
    assert window.log.state["window"]["first_step"] == first


# Loops over calls

TRAINS = {"_tfdoctor_trains": True}


def place() -> str:
    """Stands for the user's places on the stack, of which a test has none."""
    return "here"


@pytest.fixture
def calls(window: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("way_here", "way_of"):
        monkeypatch.setattr(agent.load("loops"), name, lambda *_: place())
    return agent.load("loops").TrainingLoops(window)


def call(calls: Any, *, failed: bool = False) -> None:
    calls.run_begins(TRAINS, None)
    calls.run_over(failed=failed)


def test_repeated_calls_are_steps(window: Any, calls: Any) -> None:
    for _ in range(50):
        call(calls)
    record = window.log.state["window"]
    assert (record["source"], record["first_step"], record["steps"]) == ("repeated-call", 10, 20)
    assert source(window, "repeated-call", "here").seen == 50


def test_a_function_with_a_loop_inside_is_known_while_it_runs(window: Any, calls: Any) -> None:
    calls.run_begins(TRAINS | {"_tfdoctor_loops": True}, None)
    assert window.looping[1] == threading.get_ident()
    calls.run_over(failed=False)
    assert window.looping is None


def test_a_call_that_fails_is_no_step(window: Any, calls: Any) -> None:
    for _ in range(13):
        call(calls)
    call(calls, failed=True)  # tf.errors.OutOfRangeError ends many a loop
    assert source(window, "repeated-call", "here").seen == 13
    assert window.capture.discarded == [13]


def test_calls_inside_a_loop_over_a_dataset_are_its_steps(window: Any, calls: Any) -> None:
    iterator = Batches("train")
    for _ in range(15):
        calls.before(iterator)
        for _ in range(3):  # a critic is trained three times a batch
            call(calls)
    assert window.capture.source.kind == "tf-data-loop"
    assert source(window, "tf-data-loop").seen == 15
    assert source(window, "repeated-call", "here").calls == 0


def test_eager_gradients_are_steps(window: Any, calls: Any) -> None:
    for _ in range(50):
        calls.gradient()
    record = window.log.state["window"]
    assert (record["source"], record["first_step"], record["steps"]) == ("eager-gradient", 10, 20)


def test_two_gradients_an_iteration_are_one_step(window: Any, calls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(50):
        for model in ("discriminator", "generator"):
            monkeypatch.setattr(f"{__name__}.place", lambda model=model: model)
            calls.gradient()
    assert source(window, "eager-gradient", "discriminator").seen == 50
    assert source(window, "eager-gradient", "generator").seen == 50
    assert window.log.state["window"]["steps"] == 20
    assert window.kept.source is source(window, "eager-gradient", "discriminator")


@pytest.mark.parametrize("critic", [2, 3, 5])
def test_of_calls_that_take_turns_the_least_frequent_is_the_step(
    window: Any, calls: Any, monkeypatch: pytest.MonkeyPatch, critic: int
) -> None:
    for _ in range(60):
        for name in ("critic",) * critic + ("generator",):
            monkeypatch.setattr(f"{__name__}.place", lambda name=name: name)
            call(calls)
    generator = source(window, "repeated-call", "generator")
    record = window.log.state["window"]
    assert window.kept.source is generator
    assert (record["first_step"], record["steps"], record["stopped_by"]) == (10, 20, "steps")
    assert "contains the others" in window.log.state["steps"]["why"]


def test_calls_with_loops_inside_say_what_tracing_costs(
    window: Any, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0, 9_000, 9_010, 9_022, 9_034, 9_044, 9_054])  # ms at which each call begins
    monkeypatch.setattr(
        agent.load("window.steps"), "time", SimpleNamespace(perf_counter_ns=lambda: next(clock) * 1_000_000 + 1)
    )
    for number in range(7):
        if number == 4:
            window.close("time")
        calls.run_begins(TRAINS | {"_tfdoctor_loops": True}, None)
        calls.run_over(failed=False)
    loop = source(window, "graph-loop", "here")
    assert (loop.calls, loop.seen) == (7, 0)
    assert loop.untraced() == {"count": 1, "median_ms": 10.0, "of": "calls", "traced_ms": 12.0}


def test_a_call_that_recurs_no_more_is_waited_for_once(
    window: Any, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("warm-up",) * 3 + ("train",) * 60:
        monkeypatch.setattr(f"{__name__}.place", lambda name=name: name)
        call(calls)
    assert window.kept.source is source(window, "repeated-call", "train")
    assert window.log.state["window"]["steps"] == 20
    assert "least often" not in window.log.state["steps"]["why"]


def test_the_last_step_of_a_loop_without_an_end_is_left_out(window: Any, calls: Any) -> None:
    for _ in range(15):
        calls.gradient()
    window.close("end-of-run")
    assert window.kept.discarded == [14]


def test_a_loop_that_is_left_while_its_iterator_lives_gives_way(window: Any, calls: Any) -> None:
    iterator = Batches("train")
    for _ in range(15):
        calls.before(iterator)
        calls.gradient()
    for _ in range(300):
        calls.gradient()
    assert window.kept.source.kind == "eager-gradient"
    assert window.log.state["window"]["steps"] == 20

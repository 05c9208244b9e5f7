"""Which loop is the training loop, decided without TensorFlow."""

from tests.capture.kit import *


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


@cases(
    ([("train", 12, True, True), ("valid", 5, False, True)] * 3, 36, [12, 25]),  # epochs are one training
    ([("vocabulary", 50, False, True)], 0, None),  # never trains
    ([("train", 5, True, False)] * 4, 20, []),  # a loop that is left ends with its iterator
    ([("train", 15, True, True), ("train", 15, False, True)], 15, [15, 16]),  # evaluation is taken back
)
def test_which_loop_over_data_trains(datasets: Any, seen: int, discarded: list[int] | None, window: Any) -> None:
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


@cases((100, 10), (30, 10), (25, 5), (8, 1))
def test_the_dataset_says_how_much_is_to_come(batches: int, first: int, window: Any) -> None:
    window.registry.lengths["train"] = batches
    passes(window, ("train", batches, True, True))
    assert window.log.state["window"]["first_step"] == first


TRAINS, LOOPS = {"_tfdoctor_trains": True}, {"_tfdoctor_loops": True}


class Calls:
    """The loops of a script by what a test says of its calls, whose places are those on the stack otherwise."""

    def __init__(self, window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.window, self.place, self.loops = window, "here", agent.load("loops").TrainingLoops(window)
        for name in ("way_here", "way_of"):
            monkeypatch.setattr(agent.load("loops"), name, lambda *_: self.place)

    def call(self, *places: str, failed: bool = False, **marks: bool) -> None:
        for self.place in places:
            self.loops.run_begins(TRAINS | marks, None)
            self.loops.run_over(failed=failed)

    def gradient(self, *places: str) -> None:
        for self.place in places:
            self.loops.gradient()


@pytest.fixture
def calls(window: Any, monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(window, monkeypatch)


@cases(
    ("repeated-call", ["here"] * 50, "here", 10),
    ("eager-gradient", ["here"] * 50, "here", 10),
    ("eager-gradient", ["discriminator", "generator"] * 50, "discriminator", 10),
    *(("repeated-call", [*["critic"] * n, "generator"] * 60, "generator", 10) for n in (2, 3, 5)),
    ("repeated-call", ["warm-up"] * 3 + ["train"] * 60, "train", 19),  # waited for once
)
def test_of_calls_that_take_turns_the_rarest_is_the_step(
    kind: Any, places: Any, step: Any, first: Any, calls: Any
) -> None:
    (calls.gradient if kind == "eager-gradient" else calls.call)(*places)
    window, record = calls.window, calls.window.log.state["window"]
    assert window.kept.source is source(window, kind, step)
    assert [record[name] for name in ("source", "first_step", "steps", "stopped_by")] == [kind, first, 20, "steps"]
    assert all(source(window, kind, one).seen == places.count(one) for one in set(places))


def test_a_function_with_a_loop_inside_is_known_while_it_runs(window: Any, calls: Calls) -> None:
    calls.loops.run_begins(TRAINS | LOOPS, None)
    assert window.looping[1] == threading.get_ident()
    calls.loops.run_over(failed=False)
    assert window.looping is None


def test_a_call_that_fails_is_no_step(window: Any, calls: Calls) -> None:
    calls.call(*["here"] * 13)
    calls.call("here", failed=True)  # tf.errors.OutOfRangeError ends many a loop
    assert source(window, "repeated-call", "here").seen == 13
    assert window.capture.discarded == [13]


def test_calls_inside_a_loop_over_a_dataset_are_its_steps(window: Any, calls: Calls) -> None:
    iterator = Batches("train")
    for _ in range(15):
        calls.loops.before(iterator)
        calls.call(*["here"] * 3)  # a critic is trained three times a batch
    assert window.capture.source.kind == "tf-data-loop"
    assert source(window, "tf-data-loop").seen == 15
    assert source(window, "repeated-call", "here").calls == 0


def test_calls_with_loops_inside_say_what_tracing_costs(window: Any, calls: Calls, monkeypatch: Any) -> None:
    clock = iter([0, 9_000, 9_010, 9_022, 9_034, 9_044, 9_054])  # ms at which each call begins
    times = SimpleNamespace(perf_counter_ns=lambda: next(clock) * 1_000_000 + 1)
    monkeypatch.setattr(agent.load("window.steps"), "time", times)
    calls.call(*["here"] * 4, **LOOPS)
    window.close("time")
    calls.call(*["here"] * 3, **LOOPS)
    loop = source(window, "graph-loop", "here")
    assert (loop.calls, loop.seen) == (7, 0)
    assert loop.untraced() == {"count": 1, "median_ms": 10.0, "of": "calls", "traced_ms": 12.0}


def test_the_last_step_of_a_loop_without_an_end_is_left_out(window: Any, calls: Calls) -> None:
    calls.gradient(*["here"] * 15)
    window.close("end-of-run")
    assert window.kept.discarded == [14]


def test_a_loop_that_is_left_while_its_iterator_lives_gives_way(window: Any, calls: Calls) -> None:
    iterator = Batches("train")
    for _ in range(15):
        calls.loops.before(iterator)
        calls.gradient("here")
    calls.gradient(*["here"] * 300)
    assert window.kept.source.kind == "eager-gradient"
    assert window.log.state["window"]["steps"] == 20

"""Every ms of a run is in exactly one phase, at the line that it belongs to."""

from tests.facts.kit import *
from tests.run_logs import BUILDING, IMPORTING, PID, START_NS
from tfdoctor.facts.phases.run_phases import MOST_SPANS

FIT, LOOP = "train.py:20", "train.py:12"


def phases(run: Run, why: str | None = "exit") -> RunPhases:
    return RunPhases.measure(run.recording(why), None)


def seconds(run: Run) -> Mapping[Phase, float]:
    return of(phases(run))


def of(found: RunPhases) -> Mapping[Phase, float]:
    return {phase: ms / 1000 for phase, ms in found.times.items()}


def keras(*, epochs: int = 4, first_ms: float = 400.0) -> Run:
    """A script that trains with fit and evaluates at the end of each epoch."""
    run = Run()
    run.python(0.3)
    run.python(1.5, "train.py:1", **IMPORTING)
    run.python(2.0, "prepare.py:10", calls="pandas.DataFrame.iterrows", function="load")
    run.python(0.5, "train.py:8", **BUILDING)
    run.during(RunCall.COMPILE, 0.1, "train.py:9", "Model.compile")
    with run.fit(FIT):
        run.python(0.2, FIT)
        for number in range(epochs):
            with run.epoch(FIT, number):
                run.python(0.1, FIT)
                if number == 0:
                    run.trace(1.5, FIT, "train_step", trains=True)
                else:
                    run.long_step(first_ms, 5.0, FIT, first=True)
                run.steps(300, 4.0, FIT, between_ms=1.0)
                run.during(RunCall.EVALUATE, 0.4, FIT, "Model.evaluate")
    run.during(RunCall.SAVE, 0.3, "train.py:30", "Model.save")
    run.python(0.7, "train.py:31")
    return run


def own_loop(*, tail: bool = True) -> Run:
    """A script with a training loop and an evaluating loop of its own."""
    run = Run()
    run.python(1.0, "train.py:1", **IMPORTING)
    run.python(1.0, "train.py:5", calls="numpy.append")
    for _ in range(3):
        run.steps(200, 4.0, LOOP, between_ms=2.0)
        run.python(0.6, "train.py:15", calls="numpy.savez")
        with run.call(RunCall.FUNCTION, "train.py:18", "test_step"):
            run.python(0.8, "train.py:18", tested=True)
    if tail:
        run.python(1.0, "train.py:30", calls="matplotlib.pyplot.savefig")
    return run


KERAS = {
    Phase.START: 0.01 + 0.2 + 0.3,  # from the launcher on
    Phase.IMPORTS: 1.5,
    Phase.PREPARING: 2.0 + 0.2,
    Phase.BUILDING: 0.6,
    Phase.TRACING: 1.495,  # without one step
    Phase.STEPS: 4 * 1.505,
    Phase.BOUNDARIES: 4 * 0.1 + 3 * 0.395,  # each first step beyond a usual one
    Phase.EVALUATION: 1.6,
    Phase.SAVING: 0.3,
    Phase.END: 0.7,
}
OWN_LOOP = {
    Phase.START: 0.21,
    Phase.IMPORTS: 1.0,
    Phase.PREPARING: 1.0,
    Phase.STEPS: 3.6,
    Phase.BOUNDARIES: 1.8,  # after the last step too
    Phase.EVALUATION: 2.4,
    Phase.END: 1.0,
}


@cases((keras(), KERAS, 0.04), (own_loop(), OWN_LOOP, 0.12))  # a sample, and a few
def test_a_run_is_divided_into_its_phases(run: Run, times: Mapping[Phase, float], within_s: float) -> None:
    assert seconds(run) == pytest.approx(times, abs=within_s)


def test_the_way_into_the_first_tracing_is_no_evaluation() -> None:
    """Trap: the call of the training function begins in one bucket, and its first step ends in a later one."""
    run = Run()
    with run.call(RunCall.FUNCTION, "train.py:12", "train_step"):
        run.python(0.05, "train.py:12")
        run.trace(1.5, "train.py:12", "train_step")
    run.steps(200, 4.0, "train.py:12")
    found = phases(run)
    assert found.of(Phase.EVALUATION) == 0
    assert found.of(Phase.TRACING) >= 1500


def test_what_fit_does_after_its_last_epoch_is_the_end_and_comes_once() -> None:
    """It waits for the threads of a generator: more epochs do not make it longer."""
    run = Run()
    with run.fit(FIT):
        for number in range(2):
            with run.epoch(FIT, number):
                run.steps(300, 4.0, FIT)
            run.python(3.0 if number else 0.5, FIT)
    found = phases(run)
    assert found.of(Phase.END) == pytest.approx(3000, abs=100)
    assert found.of(Phase.BOUNDARIES) == pytest.approx(500, abs=100)
    assert found.once_ms >= 2900


def test_what_comes_once_is_told_from_what_comes_again() -> None:
    short, long = phases(keras(epochs=2)), phases(keras(epochs=6))
    assert long.once_ms == pytest.approx(short.once_ms, abs=80)
    assert long.recurring_ms == pytest.approx(3 * short.recurring_ms, rel=0.07)


def test_a_function_that_trains_evaluates_where_it_does_not() -> None:
    run = own_loop()
    run.steps(200, 4.0, LOOP, between_ms=2.0)
    with run.call(RunCall.TEST, LOOP, "train_step"):
        run.python(0.8, LOOP, looped=True)
    run.steps(1, 4.0, LOOP, between_ms=2.0)
    found = seconds(run)
    assert found[Phase.EVALUATION] == pytest.approx(2.4 + 0.8, abs=0.06)
    assert found[Phase.STEPS] == pytest.approx(3.6 + 201 * 0.006, abs=0.12)


def test_a_function_that_trains_later_evaluates_before_the_first_step() -> None:
    run = Run()
    run.python(1.0, "train.py:1", **IMPORTING)
    with run.call(RunCall.FUNCTION, LOOP, "train_step"):
        run.python(2.0, LOOP, looped=True)
    run.steps(200, 4.0, LOOP, between_ms=2.0)
    found = seconds(run)
    assert found[Phase.EVALUATION] == pytest.approx(2.0, abs=0.6)  # but what lies in the first step's bucket
    assert found[Phase.STEPS] == pytest.approx(1.2, abs=0.6)


def test_a_loop_whose_data_have_ended_takes_no_steps() -> None:
    run = own_loop(tail=False)
    run.steps(200, 4.0, LOOP, between_ms=2.0)
    run.python(6.0, LOOP, looped=True, calls="")
    found = seconds(run)
    assert found[Phase.STEPS] == pytest.approx(3.6 + 1.2, abs=0.6)  # a bucket
    assert found[Phase.BOUNDARIES] == pytest.approx(1.8 + 6.0, abs=0.6)


def test_lines_say_what_each_phase_is_spent_on() -> None:
    found = phases(keras())
    (slowest,) = [line for line in found.at(Phase.PREPARING) if line.calls.startswith("pandas")]
    assert (slowest.at, slowest.function) == (Location("prepare.py", 10), "load")
    assert slowest.ms == pytest.approx(2000, abs=40)
    assert slowest.sure
    assert [line.calls for line in found.at(Phase.EVALUATION)] == ["Model.evaluate"]
    assert found.at(Phase.SAVING)[0].at == Location("train.py", 30)


def test_a_timed_call_needs_no_samples_and_a_sampled_line_does() -> None:
    run = Run(every=2.0)
    run.python(1.0, "train.py:3")
    run.during(RunCall.PREDICT, 1.0, "train.py:4", "Model.predict")
    run.python(1.0, "train.py:5")
    sure = {line.at: line.sure for line in phases(run).lines if line.at}
    assert sure[Location("train.py", 4)]
    assert not sure.get(Location("train.py", 5), False)


def test_python_of_the_user_within_an_evaluation_is_shown_at_its_own_line() -> None:
    run = Run()
    with run.call(RunCall.EVALUATE, "train.py:30", "Model.evaluate"):
        run.python(1.0, "train.py:30")
        run.python(1.0, "data.py:7", calls="PIL.Image.open", caller="train.py:30")
    lines = phases(run).at(Phase.EVALUATION)
    assert {(line.at, line.calls) for line in lines} == {
        (Location("train.py", 30), "Model.evaluate"),
        (Location("data.py", 7), "PIL.Image.open"),
    }


def test_a_program_that_only_predicts_prepares_and_predicts() -> None:
    run = Run()
    run.python(1.0, "predict.py:1", **IMPORTING)
    run.python(0.5, "predict.py:3")
    for _ in range(40):
        run.python(0.01, "predict.py:6")
        run.during(RunCall.PREDICT, 0.05, "predict.py:7", "Model.predict")
    run.python(0.4, "predict.py:9")
    times = {Phase.START: 0.21, Phase.IMPORTS: 1.0, Phase.PREPARING: 0.9, Phase.PREDICTION: 2.0, Phase.END: 0.4}
    found = seconds(run)
    assert found == pytest.approx(times, abs=0.1)
    assert found[Phase.PREDICTION] == pytest.approx(2.0, abs=0.02)


def one_after_another(*acts: tuple[float, str, dict[str, Any]] | int) -> Run:
    """Seconds of Python at a line, with what samples show, and numbers of steps of 5 ms."""
    run = Run()
    for act in acts:
        if isinstance(act, int):
            run.steps(act, 5.0, LOOP)
        else:
            run.python(act[0], act[1], **act[2])
    return run


MODEL: dict[str, Any] = {"work": RunWork.MODEL}


@cases(
    ([(2.0, "tokenize.py:7", {})], {Phase.PREPARING: 2.0}, set()),
    ([(1.0, "p.py:3", {}), (3.0, "p.py:7", {**MODEL, "tested": True})], {Phase.PREDICTION: 3.0}, {Phase.PREPARING}),
    ([(1.0, "train.py:7", MODEL), 500], {Phase.BUILDING: 1.0}, {Phase.STEPS}),
    # a layer that a loop calls for each text, as of TextVectorization, builds no model
    ([(4.0, "train.py:7", {**MODEL, "repeats": True}), 500], {Phase.PREPARING: 4.0}, {Phase.STEPS}),
    # a loop around a model is known from its first call on
    (
        [400, (0.3, "train.py:20", {}), (0.7, "train.py:20", {"tested": True})],
        {Phase.EVALUATION: 1.0},
        {Phase.STEPS},
    ),
    ids=["no model", "calls a model", "calls it once", "calls a layer", "a loop"],
)
def test_what_is_done_with_a_model_and_when(acts: list[Any], phase: dict[Phase, float], others: set[Phase]) -> None:
    found = seconds(one_after_another(*acts))
    assert {one: found[one] for one in phase} == pytest.approx(phase, abs=0.05)
    assert set(found) == {Phase.START, *phase, *others}


@cases(
    ({"calls": "subprocess.run", "runs": "selectors.PollSelector.select"}, True),
    ({"calls": "subprocess.Popen.wait", "runs": "subprocess.Popen._wait"}, True),
    ({"calls": "os.waitpid"}, True),
    ({"calls": "os.spawnve", "runs": "os._spawnvef"}, True),
    ({"calls": "posix.system"}, True),
    ({"calls": "multiprocessing.pool.Pool.map", "children": True}, True),
    ({"calls": "threading.Thread.join", "children": True}, True),
    ({"calls": "threading.Thread.join"}, False),  # of a thread that works, or without children
    ({"calls": "socket.socket.recv", "children": True}, True),
    ({"calls": None, "children": True}, True),  # a line that reads a pipe
    ({"calls": "time.sleep", "repeats": True, "children": True}, True),  # until `poll` says so
    ({"calls": "time.sleep", "repeats": True}, False),
    ({"calls": "time.sleep", "repeats": False, "children": True}, False),
    ({"calls": "pandas.read_csv"}, False),
)
def test_a_wait_for_child_processes_is_no_preparation(stack: Mapping[str, Any], *, waits: bool) -> None:
    run = Run()
    run.python(4.0, "launch.py:7", **stack)
    found = RunPhases.measure(run.recording(versions={"tensorflow": "2.21.0"}), None)
    waited = Phase.CHILDREN if waits else Phase.PREPARING
    assert of(found) == pytest.approx({Phase.START: 0.21, waited: 4.0})
    assert found.unseen == waits


@cases(
    (1, 0, True),
    (2, 1, True),
    (1, 1, False),
    (1, 4, True),
    ids=["over", "next to a logger", "a logger", "before other workers"],
)
def test_children_that_live_on_while_it_trains_are_no_wait(before: int, meanwhile: int, *, waits: bool) -> None:
    """They log, or make batches: what the script waits for next to them is something else."""
    run = Run()
    run.count(children=before)
    run.python(3.0, "train.py:4", calls="socket.socket.recv", children=True)
    run.count(children=min(before - 1, meanwhile) if waits else before)
    run.python(1.0, "train.py:6", calls="numpy.append")
    run.count(children=meanwhile)
    run.steps(200, 10.0, "train.py:12")
    found = seconds(run)
    waited = Phase.CHILDREN if waits else Phase.PREPARING
    assert found[waited] == pytest.approx(3.0 if waits else 4.0, abs=0.6)


def test_a_wait_for_child_processes_between_steps_is_the_loops() -> None:
    """So is one for those that make batches, as of fit's workers."""
    for stack in ({"calls": "subprocess.run"}, {"runs": "select.poll.poll", "children": True}):
        waits = (2.0, "train.py:13", {"looped": True, **stack})
        assert Phase.CHILDREN not in seconds(one_after_another(200, waits, 200))
    run, worker = Run(), {"runs": "threading.Condition.wait", "children": True}
    with run.fit(FIT):
        run.python(1.0, FIT, **worker)
        with run.epoch(FIT):
            run.python(1.0, FIT, **worker)
            run.steps(100, 10.0, FIT)
    assert Phase.CHILDREN not in seconds(run)


def of_framework(run: Run, *frameworks: RunFramework) -> RunPhases:
    log = replace(run.log(), frameworks=frameworks)
    versions = {framework.name: framework.version for framework in frameworks}
    return RunPhases.measure(replace(run.recording(versions=versions), run=log), None)


def test_a_fit_of_another_backend_is_training() -> None:
    run = Run()
    run.python(1.0, "train.py:3", **IMPORTING)
    run.python(0.5, "train.py:4", calls="numpy.random.normal")
    for _ in range(2):
        with run.call(RunCall.TRAIN, FIT, "Model.fit"):
            run.python(3.0, FIT, runs="jax._src.pjit.cache_miss")
            run.during(RunCall.EVALUATE, 0.5, FIT, "Model.evaluate")
        run.python(0.25, "train.py:21")
    jax = RunFramework("jax", "0.10.2")
    found = of_framework(run, RunFramework("tensorflow", "2.21.0"), jax, replace(jax, keras=True))
    times = {Phase.START: 0.21, Phase.IMPORTS: 1.0, Phase.OWN: 1.0}
    expected = {**times, Phase.STEPS: 6.0, Phase.EVALUATION: 1.0}
    assert of(found) == pytest.approx(expected, abs=0.05)
    assert found.at(Phase.STEPS)[0].at == Location("train.py", 20)


@each(("jax",), ("torch", "jax"), ("tensorflow", "jax"), ())
def test_the_work_of_a_program_of_another_framework_is_not_called_preparation(names: tuple[str, ...]) -> None:
    """What waits for a compiled function of JAX has no frame that says so."""
    run = Run()
    run.python(1.0, "train.py:2", **IMPORTING)
    run.python(4.0, "train.py:11", repeats=True, loops=1)
    run.python(1.0, "train.py:12", work=RunWork.MODEL)
    found = of_framework(run, *map(RunFramework, names))
    other = bool(names) and "tensorflow" not in names
    assert (found.of(Phase.OWN) > 0, found.of(Phase.PREPARING) > 0) == (other, not other)
    assert (found.of(Phase.PREDICTION) > 0, found.unseen) == (not other, "tensorflow" not in names)


def test_a_loop_around_fit_is_no_training_loop() -> None:
    run = Run()
    for _ in range(3):
        run.python(1.0, "tune.py:5", looped=True, calls="numpy.load")
        with run.fit("tune.py:9"), run.epoch("tune.py:9"):
            run.steps(100, 5.0, "tune.py:9")
    found = seconds(run)
    assert found[Phase.STEPS] == pytest.approx(1.5, abs=0.01)
    assert found[Phase.PREPARING] + found[Phase.BOUNDARIES] == pytest.approx(3.0, abs=0.01)


def test_a_trace_within_a_prediction_is_tracing() -> None:
    run = Run()
    with run.call(RunCall.PREDICT, "p.py:3", "Model.predict"):
        run.trace(1.0, "p.py:3", "predict_function")
        run.python(1.0, "p.py:3")
    assert seconds(run) == pytest.approx({Phase.START: 0.21, Phase.TRACING: 1.0, Phase.PREDICTION: 1.0})


def test_compiling_in_each_epoch_leaves_little_for_steps() -> None:
    run = Run()
    for number in range(10):
        run.during(RunCall.COMPILE, 0.02, "train.py:8", "Model.compile")
        with run.fit("train.py:9"), run.epoch("train.py:9"):
            run.trace(1.1, "train.py:9", "train_step", trains=True, made=number)
            run.steps(9, 3.8, "train.py:9")
    found = seconds(run)
    assert found[Phase.TRACING] == pytest.approx(10 * (1.1 - 0.0038), abs=0.01)
    assert found[Phase.STEPS] == pytest.approx(0.38, abs=0.01)


def test_where_every_step_traces_no_usual_step_is_made_up() -> None:
    run = Run()
    for _ in range(5):
        run.trace(1.0, "train.py:9", "train_step", trains=True)
    assert seconds(run)[Phase.TRACING] == pytest.approx(5.0)


@pytest.mark.parametrize("traces", [True, False])
def test_a_first_step_that_traces_or_is_hardly_longer_is_no_boundary(*, traces: bool) -> None:
    run = Run()
    with run.fit(FIT), run.epoch(FIT):
        if traces:
            run.long_steps.append(LongStep(0, run.now, 1500.0, 5.0, first=True))
            run.trace(1.5, FIT, "train_step", trains=True)
        else:
            run.long_step(7.0, 5.0, FIT, first=True)
        run.steps(300, 5.0, FIT)
    found = seconds(run)
    assert found.get(Phase.TRACING, 0.0) == pytest.approx(1.495 if traces else 0.0)
    assert found.get(Phase.BOUNDARIES, 0.0) == pytest.approx(0.0, abs=1e-9)


# The begin and the end


def test_a_run_that_was_ended_after_its_traced_steps_is_known_as_such() -> None:
    full = TracedWindow(stopped_by="steps")
    for asked in (True, False):
        given = own_loop().recording(plan=CapturePlan(stop_after=asked), window=full)
        assert RunPhases.measure(given, None).ended_early is asked


@cases((2.0, 2000, 0), (20.0, 0, 20_000))
def test_a_killed_run_ends_with_its_last_record(silent: float, end: float, unnamed: float) -> None:
    """A long silence before has no name."""
    run = own_loop(tail=False)
    times = RunTimes(START_NS, START_NS + round((run.now + silent) * 1e9), pid=PID)
    found = RunPhases.measure(run.recording(None, times=times), None)
    assert not found.finished
    assert found.of(Phase.UNNAMED) == pytest.approx(unnamed, abs=1)
    assert not end or found.of(Phase.END) == pytest.approx(end, abs=1)


def test_the_account_of_a_process_of_another_command_is_its_own() -> None:
    run = own_loop()
    times = RunTimes(START_NS - 10**10, START_NS + 10**12, pid=PID + 1)
    found = RunPhases.measure(run.recording(times=times), None)
    assert found.total_ms == pytest.approx(run.now * 1000)


def test_a_gap_in_the_log_has_no_name() -> None:
    log = own_loop().log()
    log = replace(log, buckets=log.buckets[:3] + log.buckets[5:])
    found = RunPhases.measure(replace(recording(), run=log), None)
    assert found.of(Phase.UNNAMED) == pytest.approx(1000, abs=1)


def test_other_processes_and_clocks_are_mentioned() -> None:
    run = own_loop()
    times = RunTimes(START_NS, None, pid=PID, suspended_ns=20 * 10**9, clock_jump_ns=-3 * 10**9)
    others = (EndedProcess(PID, ("train.py",)), EndedProcess(9, ("worker.py",), why="it trains nothing"))
    found = RunPhases.measure(run.recording(times=times, processes=others), None)
    assert found.others == ("worker.py (it trains nothing)",)
    assert [note.split(" meanwhile")[0] for note in found.notes] == [
        "The machine slept for 20.0 s",
        "The wall clock was set by 3.00 s",
    ]


@cases(
    (8, True, "--steps 4 traces less, --no-trace traces nothing."),
    (1, True, "--no-trace traces nothing."),
    (8, False, ""),
)
def test_a_profiler_that_took_too_long_is_told_with_its_seconds(steps: int, *, too_long: bool, advice: str) -> None:
    cost = WindowCost(steps, start_s=0.5, stop_s=6.0, run_s=26.0, too_long=too_long)
    found = RunPhases.measure(replace(own_loop().recording(), manifest=manifest(costs=(cost,))), None)
    told = f"To start and to stop the profiler took 6.5 s (25 % of the run until then): {advice}"
    assert found.notes == ((told,) if advice else ())


def test_a_trace_alone_is_an_account_of_its_window() -> None:
    found = RunPhases.measure(recording(), Steps.uniform(20, 5.0))
    assert found.times == pytest.approx({Phase.STEPS: 100.0})
    assert not found.whole
    assert found.missing == ("the rest of the run was not recorded: a trace contains the traced window only")


test_without_log_and_steps_nothing_is_known = unavailable(
    (lambda: RunPhases.measure(recording(manifest=manifest()), None), "not recorded"),
    (lambda: RunEnding.measure(recording()), "not recorded"),
)


# The bar


def test_the_bar_has_no_gaps_and_little_of_a_wrong_phase() -> None:
    found = phases(keras())
    shown: dict[Phase, float] = {}
    for span in found.spans:
        shown[span.phase] = shown.get(span.phase, 0.0) + (span.end_ms - span.start_ms) / 1000
    assert found.spans[0].start_ms == 0.0
    assert found.spans[-1].end_ms == pytest.approx(found.total_ms)
    assert shown == pytest.approx(of(found), abs=0.1)


def test_a_long_run_has_a_bar_of_limited_length() -> None:
    run = Run(width=20.0, every=1.0)
    for _ in range(600):
        run.python(0.3, "p.py:2")
        run.during(RunCall.PREDICT, 0.7, "p.py:3", "Model.predict")
    spans = phases(run).spans
    assert 1 <= len(spans) <= MOST_SPANS
    assert all(a.end_ms == b.start_ms for a, b in pairwise(spans))


# Any log

KINDS = st.sampled_from(list(RunCall))
MS_OF = st.dictionaries(st.integers(0, 6).map(str), st.floats(0, 2000), max_size=4)


@st.composite
def logs(draw: st.DrawFn) -> RunLog:
    """Logs of any content, damaged ones as well."""
    calls = {
        number: CallPlace(number, draw(KINDS), ("/job/t.py", number), "f", draw(st.none() | st.integers(0, 5)))
        for number in range(draw(st.integers(0, 6)))
    }
    stacks = {
        number: SeenStack(
            number,
            draw(st.integers(0, 6)),
            draw(st.none() | st.just(("/job/t.py", 9))),
            work=draw(st.sampled_from(list(RunWork))),
            looped=draw(st.booleans()),
            tested=draw(st.booleans()),
            long=draw(st.booleans()),
        )
        for number in range(5)
    }
    buckets, at = [], draw(st.floats(0, 2))
    for _ in range(draw(st.integers(0, 8))):
        at += draw(st.sampled_from([0.0, 0.0, 0.0, 1.5]))
        end = at + draw(st.floats(0.01, 3))
        each = tuple(draw(st.lists(st.floats(0.1, 500), max_size=4)))
        steps = BucketSteps("x", None, len(each), len(each), sum(each), each)
        buckets.append(Bucket(at, end, draw(MS_OF), {"1": 2}, draw(MS_OF), {"1": 3}, (steps,) if each else ()))
        at = end
    starts = st.lists(st.tuples(st.floats(0, at + 1), st.floats(0, 4)), max_size=5)
    return RunLog(
        RunProcess(PID, 0, START_NS, draw(st.floats(0, 3))),
        calls,
        stacks,
        tuple(buckets),
        tuple(Span(n, start, start + length) for n, (start, length) in enumerate(draw(starts))),
        tuple(FunctionTrace("f", None, s, 1000 * n, call=2) for s, n in draw(starts)),
        tuple(LongStep(0, s, 1000 * n, draw(st.floats(0, 9)), first=True) for s, n in draw(starts)),
        (),
        end=draw(st.none() | st.floats(0, 30).map(lambda end: ProcessEnd(end, "exit"))),
    )


@given(logs(), st.floats(0, 2), st.none() | st.floats(0, 60))
def test_every_ms_is_in_one_phase(log: RunLog, earlier: float, end: float | None) -> None:
    ended = None if end is None else START_NS + round(end * 1e9)
    times = RunTimes(START_NS - round(earlier * 1e9), ended, pid=PID)
    found = RunPhases.measure(replace(recording(manifest=manifest(times=times)), run=log), None)
    last = max([log.process.began, end or 0.0, *(b.end for b in log.buckets), log.end.end if log.end else 0.0])
    assert found.total_ms == pytest.approx((last + earlier) * 1000, rel=1e-6, abs=1e-3)
    assert sum(found.times.values()) == pytest.approx(found.total_ms)
    assert all(ms >= 0 for ms in found.times.values())
    assert 0 <= found.once_ms <= found.total_ms + 1e-6
    for phase in Phase:
        assert sum(line.ms for line in found.at(phase)) <= found.of(phase) + 1e-6
    gaps = [b.start_ms - a.end_ms for a, b in pairwise(found.spans)]
    assert gaps == pytest.approx([0.0] * len(gaps), abs=1e-3)
    assert sum(s.end_ms - s.start_ms for s in found.spans) == pytest.approx(found.total_ms)


def test_a_timed_line_tells_how_much_of_it_tensorflow_executes() -> None:
    run = Run()
    for _ in range(20):
        with run.call(RunCall.PREDICT, "p.py:7", "Model.predict"):
            run.python(0.3, "p.py:7", runs="tensorflow.python.data.ops.iterator_ops.OwnedIterator.__init__")
            run.python(0.1, "p.py:7", runs="tensorflow.python.eager.execute.quick_execute")
    (line,) = RunPhases.measure(run.recording(), None).at(Phase.PREDICTION)
    assert line.ms == pytest.approx(8000, rel=0.02)
    assert line.executes_ms == pytest.approx(2000, rel=0.1)


@cases(
    (own_loop(), RunCall.STEP, [(RunCall.FUNCTION, "train_step"), (RunCall.TEST, "test_step")], "train_step"),
    (Run(), RunCall.TRACE, [(RunCall.TRACE, "serve")], "serve"),  # which another thread traces
)
def test_the_step_has_the_name_of_the_function_that_trains(
    run: Run, kind: RunCall, calls: list[tuple[RunCall, str]], name: str
) -> None:
    for call, called in calls:
        with run.call(call, LOOP, called):
            run.python(0.1, LOOP)
    course = RunCourse.of(run.log())
    (step,) = course.of_kind(kind)
    assert course.label(step.id) == name


# How a run ended: as the process told, else as the launcher saw it; what memory it wanted.

TENSOR = (
    "Graph execution error: Detected at node gradient_tape/embedding/Reshape "
    "OOM when allocating tensor with shape[3075200,512] and type float on "
    "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n [[{{node x}}]]"
)
ARRAY = "Unable to allocate 7.45 GiB for an array with shape (100000, 10000) and data type float64"


def run() -> Run:
    made = Run()
    made.python(1.0, "load.py:3")
    made.count(rss=3 * 10**9)
    made.python(1.0, "load.py:4")
    return made


def ended(why: str | None, *, into: Run | None = None, **end: Any) -> RunEnding:
    given = (into or run()).recording(why)
    assert given.run is not None
    if given.run.end is None:
        return RunEnding.measure(given)
    return RunEnding.measure(replace(given, run=replace(given.run, end=replace(given.run.end, **end))))


def killed(signal: int | None, code: int, oom_kills: int = 0, pid: int = PID) -> RunEnding:
    times = RunTimes(START_NS, START_NS + 10**10, pid=pid, oom_kills=oom_kills, limit_bytes=4 * 10**9)
    outcome = Ending(code, signal)
    return RunEnding.measure(run().recording(None, times=times, outcome=outcome, finished=True))


@cases(
    (None, "", EndKind.RUNNING),  # unfinished
    ("exit", "", EndKind.EXIT),
    ("interrupt", "KeyboardInterrupt", EndKind.INTERRUPT),
    ("exception", "ValueError", EndKind.EXCEPTION),
    ("exception", "MemoryError", EndKind.OUT_OF_MEMORY),
    ("exception", "ResourceExhaustedError", EndKind.OUT_OF_MEMORY),
    ("exception", "InternalError", EndKind.EXCEPTION),
)
def test_a_process_tells_its_end(why: str | None, error: str, kind: EndKind) -> None:
    assert ended(why, error=error).kind is kind


def test_a_status_code_says_what_a_general_error_means() -> None:
    text = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2147483648 bytes."
    found = ended("exception", error="XlaRuntimeError", message=text)
    assert (found.kind, found.wanted_bytes) == (EndKind.OUT_OF_MEMORY, 2**31)


def test_the_tensor_that_found_no_room_is_read() -> None:
    found = ended("exception", error="ResourceExhaustedError", message=TENSOR, at=("/job/train.py", 41))
    assert (found.shape, found.dtype, found.allocator) == ((3075200, 512), "float32", "GPU_0_bfc")
    assert (found.wanted_bytes, found.at) == (3075200 * 512 * 4, Location("train.py", 41))
    assert not found.killed_by_kernel


def test_an_array_of_numpy_is_read() -> None:
    found = MemoryWanted.of(ARRAY)
    assert found == MemoryWanted((100_000, 10_000), "float64", "", 8e9)
    odd = MemoryWanted.of(ARRAY.replace("float64", "object"))
    assert odd.nbytes == pytest.approx(7.45 * 2**30)
    assert MemoryWanted.of("something else") == MemoryWanted()


@cases(
    (9, 137, 1, EndKind.OUT_OF_MEMORY),
    (9, 137, 0, EndKind.KILLED),
    (None, 137, 1, EndKind.OUT_OF_MEMORY),  # through a shell
    (15, 143, 1, EndKind.KILLED),
    (2, 130, 0, EndKind.INTERRUPT),
    (None, 3, 0, EndKind.EXIT),  # os._exit
)
def test_the_launcher_sees_the_end_of_a_killed_process(
    signal: int | None, code: int, oom_kills: int, kind: EndKind
) -> None:
    found = killed(signal, code, oom_kills)
    assert found.kind is kind
    assert found.killed_by_kernel is (kind is EndKind.OUT_OF_MEMORY)


def test_of_another_process_of_the_run_the_exit_code_says_nothing() -> None:
    assert killed(None, 0, pid=PID + 1).kind is EndKind.RUNNING
    assert killed(None, 1, oom_kills=1, pid=PID + 1).kind is EndKind.OUT_OF_MEMORY


def test_memory_and_phase_are_those_of_the_end() -> None:
    found = killed(9, 137, 1)
    assert (found.peak_bytes, found.limit_bytes) == (3e9, 4e9)
    assert found.phase is Phase.PREPARING


def test_an_error_in_evaluation_ends_there() -> None:
    made = run()
    made.steps(200, 5.0, "train.py:9")
    made.during(RunCall.EVALUATE, 1.0, "train.py:12", "Model.evaluate")
    made.python(0.1)
    assert ended("exception", into=made, error="MemoryError").phase is Phase.EVALUATION


def test_an_old_recording_tells_what_the_launcher_saw() -> None:
    host = HostMachine(memory_bytes=8 * 10**9)
    old = recording(manifest=manifest(outcome=Ending(0), host=host, finished=True))
    assert RunEnding.measure(old).kind is EndKind.EXIT
    assert RunEnding.measure(old).limit_bytes == 8e9

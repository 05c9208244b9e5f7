"""Every ms of a run is in exactly one phase, at the line that it belongs to."""

from tests.facts.kit import *
from tests.run_logs import *
from tfdoctor.recording.run_log import UnreadSource

FIT, LOOP = "train.py:20", "train.py:12"
WORKER: dict[str, Any] = {"runs": "threading.Condition.wait", "children": True}
told = Told()


def phases(run: Run, why: str | None = "exit", **more: Any) -> RunPhases:
    return RunPhases.measure(run.recording(why, **more), None)


def seconds(run: Run) -> dict[str, float]:
    return of(phases(run))


def of(found: RunPhases) -> dict[str, float]:
    return {str(phase): round(ms / 1000, 3) for phase, ms in found.times.items()}


def keras(to: Run | None = None, *, epochs: int = 4) -> Run:
    """A script that trains with fit and evaluates at the end of each epoch."""
    run = made(
        python(0.3),
        python(1.5, "train.py:1", **IMPORTING),
        python(2.0, "prepare.py:10", calls="pandas.DataFrame.iterrows", function="load"),
        python(0.5, "train.py:8", **BUILDING),
        during(RunCall.COMPILE, 0.1, "train.py:9", "Model.compile"),
        to=to,
    )
    with run.fit(FIT):
        run.python(0.2, FIT)
        for number in range(epochs):
            with run.epoch(FIT):
                run.python(0.1, FIT)
                if number == 0:
                    run.trace(1.5, FIT, "train_step", trains=True)
                else:
                    run.long_step(400.0, 5.0, FIT, first=True)
                run.steps(300, 4.0, FIT, between_ms=1.0)
                run.during(RunCall.EVALUATE, 0.4, FIT, "Model.evaluate")
    run.during(RunCall.SAVE, 0.3, "train.py:30", "Model.save")
    run.python(0.7, "train.py:31")
    return run


def own_loop(to: Run | None = None, *, tail: bool = True) -> Run:
    """A script with a training loop and an evaluating loop of its own."""
    epochs = 3 * (
        steps(200, 4.0, LOOP, between_ms=2.0),
        python(0.6, "train.py:15", calls="numpy.savez"),
        within(RunCall.FUNCTION, "train.py:18", "test_step", python(0.8, "train.py:18", tested=True)),
    )
    end = (python(1.0, "train.py:30", calls="matplotlib.pyplot.savefig"),) if tail else ()
    begin = python(1.0, "train.py:1", **IMPORTING), python(1.0, "train.py:5", calls="numpy.append")
    return made(*begin, *epochs, *end, to=to)


MODEL: dict[str, Any] = {"work": RunWork.MODEL}
IMPORTS, PAUSE = python(1.0, "train.py:1", **IMPORTING), python(0.5, FIT)
TRAINS, FAST, EPOCH = steps(200, 4.0, LOOP, between_ms=2.0), steps(200, 5.0, LOOP), steps(300, 4.0, FIT)
STEP = steps(1, 4.0, LOOP, between_ms=2.0)
LOADS = python(1.0, "predict.py:1", **IMPORTING), python(0.5, "predict.py:3")
TEXTS = python(4.0, "train.py:7", repeats=True, **MODEL)
CALLED = python(0.3, "train.py:20"), python(0.7, "train.py:20", tested=True)
WAY_IN = within(RunCall.FUNCTION, LOOP, "train_step", python(0.05, LOOP), traces(1.5, LOOP, "train_step"))
TESTS = within(RunCall.TEST, LOOP, "train_step", python(0.8, LOOP, looped=True))
EARLY = within(RunCall.FUNCTION, LOOP, "train_step", python(2.0, LOOP, looped=True))
PREDICTS = python(0.01, "predict.py:6"), during(RunCall.PREDICT, 0.05, "predict.py:7", "Model.predict")
CHILD = python(2.0, "train.py:13", looped=True, calls="subprocess.run")
MAKER = python(2.0, "train.py:13", looped=True, runs="select.poll.poll", children=True)
WAITS = python(1.0, FIT, **WORKER)
TUNES = python(1.0, "tune.py:5", looped=True, calls="numpy.load")
FITS = fit("tune.py:9", epoch("tune.py:9", steps(100, 5.0, "tune.py:9")))
TRACED = traces(1.0, "p.py:3", "predict_function"), python(1.0, "p.py:3")
COMPILES = during(RunCall.COMPILE, 0.02, "train.py:8", "Model.compile")
SHORT = [
    fit(FIT, epoch(FIT, traces(1.1, FIT, "step", trains=True, made=number), steps(9, 3.8, FIT)))
    for number in range(10)
]
FIRST_TRACES = traces(1.5, FIT, "train_step", trains=True), steps(300, 5.0, FIT)
OPENS = python(1.0, "data.py:7", calls="PIL.Image.open", caller="train.py:30")
MAKES = python(0.3, "p.py:7", runs="tensorflow.python.data.ops.iterator_ops.OwnedIterator.__init__")
EXECUTES = python(0.1, "p.py:7", runs="tensorflow.python.eager.execute.quick_execute")

told[lambda *acts: seconds(made(*acts))] = {
    "a run of fit is divided into its phases": keras,
    "so is one with a loop of its own": own_loop,
    # Trap: the call of the training function begins in one bucket, and its first step ends in a later one.
    "the way into the first tracing is no evaluation": (WAY_IN, steps(200, 4.0, LOOP)),
    # It waits for the threads of a generator: more epochs do not make it longer.
    "what fit does after its last epoch is the end": fit(
        FIT, epoch(FIT, EPOCH), PAUSE, epoch(FIT, EPOCH), python(3.0, FIT)
    ),
    "a function that trains evaluates where it does not": (own_loop, TRAINS, TESTS, STEP),
    "a function that trains later evaluates before the first step": (IMPORTS, EARLY, TRAINS),
    "a loop whose data have ended takes no steps": (TRAINS, python(6.0, LOOP, looped=True, calls="")),
    "a program that only predicts prepares and predicts": (*LOADS, *40 * PREDICTS, python(0.4, "predict.py:9")),
    "python without a model prepares": python(2.0, "tokenize.py:7"),
    "python that calls a model predicts": (python(1.0, "p.py:3"), python(3.0, "p.py:7", tested=True, **MODEL)),
    "python that calls a model once builds it": (python(1.0, "train.py:7", **MODEL), steps(500, 5.0, LOOP)),
    # as of TextVectorization
    "a layer that a loop calls for each text builds no model": (TEXTS, steps(500, 5.0, LOOP)),
    "a loop around a model is known from its first call on": (steps(400, 5.0, LOOP), *CALLED),
    "a wait for child processes between steps is the loops": (FAST, CHILD, FAST),
    "so is one for those that make batches": (FAST, MAKER, FAST),
    "and a wait for the workers of fit": fit(FIT, WAITS, epoch(FIT, WAITS, steps(100, 10.0, FIT))),
    "a loop around fit is no training loop": 3 * (TUNES, FITS),
    "a trace within a prediction is tracing": within(RunCall.PREDICT, "p.py:3", "predict", *TRACED),
    "compiling in each epoch leaves little for steps": [act for fits in SHORT for act in (COMPILES, fits)],
    "where every step traces no usual step is made up": 5 * (traces(1.0, FIT, "train_step", trains=True),),
    "a first step that traces is no boundary": fit(
        FIT,
        epoch(FIT, lambda run: run.long_steps.append(LongStep(0, run.now, 1500.0, 5.0, first=True)), *FIRST_TRACES),
    ),
    "a first step that is hardly longer is no boundary": fit(
        FIT, epoch(FIT, long_step(7.0, 5.0, FIT, first=True), steps(300, 5.0, FIT))
    ),
}
told[lambda *acts: phases(made(*acts)).lines] = {
    "lines say what each phase is spent on": keras,
    "python of the user within an evaluation is shown at its own line": within(
        RunCall.EVALUATE, "train.py:30", "Model.evaluate", python(1.0, "train.py:30"), OPENS
    ),
    "a timed line tells how much of it tensorflow executes": 20
    * (within(RunCall.PREDICT, "p.py:7", "Model.predict", MAKES, EXECUTES),),
}


@told
def a_timed_call_needs_no_samples_and_a_sampled_line_does() -> object:
    run = made(
        python(1.0, "train.py:3"),
        during(RunCall.PREDICT, 1.0, "train.py:4", "Model.predict"),
        python(1.0, "train.py:5"),
        to=Run(every=2.0),
    )
    return {f"{in_words(line.at)} is sure": line.sure for line in phases(run).lines if line.at}


@cases(((9, 10), True), ((8, 10), False), ((0, 0), False))
def test_a_line_works_on_one_item_where_nearly_all_calls_have_one_row(
    seen: tuple[int, int], *, single: bool
) -> None:
    """Also at the line of a call that is timed, whose name is not that of the sampled stack."""
    one_row, calls = seen
    given = made(during(RunCall.FUNCTION, 2.0, "play.py:8", "policy")).recording()
    log = sure(given.run)
    numbers = [number for number, stack in log.stacks.items() if stack.at]
    told = {str(number): (calls, one_row) for number in numbers} if calls else {}
    again = replace(log, buckets=(replace(log.buckets[0], single=told, given=told), *log.buckets[1:]))
    (line,) = (one for one in RunPhases.measure(replace(given, run=again), None).lines if one.at)
    assert (line.exact, line.single) == (True, single)
    assert (line.given, line.again) == (calls * len(numbers), one_row * len(numbers))


def test_what_comes_once_is_told_from_what_comes_again() -> None:
    short, long = phases(keras(epochs=2)), phases(keras(epochs=6))
    assert long.once_ms == pytest.approx(short.once_ms, abs=80)
    assert long.recurring_ms == pytest.approx(3 * short.recurring_ms, rel=0.07)


@cases(
    ({"calls": "subprocess.run", "runs": "selectors.PollSelector.select"}, True),
    ({"calls": "subprocess.Popen.wait", "runs": "subprocess.Popen._wait"}, True),
    *(({"calls": calls}, True) for calls in ("os.waitpid", "os.spawnve", "posix.system")),
    *(
        ({"calls": calls, "children": True}, True)
        for calls in ("multiprocessing.pool.Pool.map", "threading.Thread.join")
    ),
    ({"calls": "threading.Thread.join"}, False),  # of a thread that works, or without children
    ({"calls": "socket.socket.recv", "children": True}, True),
    ({"calls": None, "children": True}, True),  # a line that reads a pipe
    ({"calls": "time.sleep", "repeats": True, "children": True}, True),  # until `poll` says so
    ({"calls": "time.sleep", "repeats": True}, False),
    ({"calls": "time.sleep", "repeats": False, "children": True}, False),
    ({"calls": "pandas.read_csv"}, False),
)
def test_a_wait_for_child_processes_is_no_preparation(stack: Mapping[str, Any], *, waits: bool) -> None:
    found = phases(made(python(4.0, "launch.py:7", **stack)), versions={"tensorflow": "2.21.0"})
    assert of(found) == {Phase.START: 0.21, (Phase.CHILDREN if waits else Phase.PREPARING): 4.0}
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
    run = made(
        count(children=before),
        python(3.0, "train.py:4", calls="socket.socket.recv", children=True),
        count(children=min(before - 1, meanwhile) if waits else before),
        python(1.0, "train.py:6", calls="numpy.append"),
        count(children=meanwhile),
        steps(200, 10.0, "train.py:12"),
    )
    assert (Phase.CHILDREN in seconds(run)) is waits


def of_framework(run: Run, *frameworks: RunFramework) -> RunPhases:
    log = replace(run.log(), frameworks=frameworks)
    versions = {framework.name: framework.version for framework in frameworks}
    return RunPhases.measure(replace(run.recording(versions=versions), run=log), None)


@told
def a_fit_of_another_backend_is_training() -> object:
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
    return {"times": of(found), "lines": found.at(Phase.STEPS)}


def unlike_tensorflow(*names: str) -> object:
    """What waits for a compiled function of JAX has no frame that says so."""
    run = Run()
    run.python(1.0, "train.py:2", **IMPORTING)
    run.python(4.0, "train.py:11", repeats=True, loops=1)
    run.python(1.0, "train.py:12", work=RunWork.MODEL)
    found = of_framework(run, *map(RunFramework, names))
    return {"unseen": found.unseen, **of(found)}


told[unlike_tensorflow] = {
    "the work of a program of JAX is not called preparation": "jax",
    "nor is that of one with two other frameworks": ("torch", "jax"),
    "where TensorFlow is imported as well it is": ("tensorflow", "jax"),
    "without any framework it is": (),
}


# The begin and the end


def summed_up(found: RunPhases) -> object:
    """All that a run's phases say but for lines and the bar."""
    return {"times": of(found), "else": replace(found, lines=(), spans=(), times={})}


told[
    lambda asked: summed_up(
        phases(own_loop(), plan=CapturePlan(stop_after=asked), window=TracedWindow(stopped_by="steps"))
    )
] = {"a run that was ended after its traced steps is known as such": True, "unless it was not asked to": False}


def killed_after(silent: float) -> object:
    run = own_loop(tail=False)
    times = RunTimes(START_NS, START_NS + round((run.now + silent) * 1e9), pid=PID)
    return summed_up(phases(run, None, times=times))


told[killed_after] = {
    "a killed run ends with its last record": 2.0,
    "a long silence before it was killed has no name": 20.0,
}


@told
def the_account_of_a_process_of_another_command_is_its_own() -> object:
    return summed_up(phases(own_loop(), times=RunTimes(START_NS - 10**10, START_NS + 10**12, pid=PID + 1)))


@told
def a_gap_in_the_log_has_no_name() -> object:
    log = own_loop().log()
    gone = replace(log, buckets=log.buckets[:3] + log.buckets[5:])
    return of(RunPhases.measure(replace(recording(), run=gone), None))


@told
def other_processes_and_clocks_are_mentioned() -> object:
    times = RunTimes(START_NS, None, pid=PID, suspended_ns=20 * 10**9, clock_jump_ns=-3 * 10**9)
    others = (EndedProcess(PID, ("train.py",)), EndedProcess(9, ("worker.py",), why="it trains nothing"))
    return fields(phases(own_loop(), times=times, processes=others), "others notes")


@told
def source_that_is_too_long_is_mentioned() -> object:
    unread = UnreadSource("/job/train.py"), UnreadSource("/job/data.py")
    return RunPhases.measure(replace(recording(), run=replace(own_loop().log(), unread=unread)), None).notes


def costly(steps: int, too_long: bool, start_s: float = 0.5) -> object:  # noqa: FBT001 - a row of values
    cost = WindowCost(steps, start_s=start_s, stop_s=6.0, run_s=26.0, too_long=too_long)
    return RunPhases.measure(replace(own_loop().recording(), manifest=manifest(costs=(cost,))), None).notes


told[costly] = {
    "a profiler that took too long is told with its seconds": (8, True),
    "of a single step no fewer can be traced": (1, True),
    "fewer steps spare little of a profiler that is slow to start": (8, True, 7.0),
    "a profiler that did not is not told": (8, False),
}

told.add("a trace alone tells of its window", lambda: RunPhases.measure(recording(), even_steps(20, 5.0)))

told.add("without log and steps nothing is known", lambda: RunPhases.measure(recording(manifest=manifest()), None))
told.add("the end of a run without log is not known", lambda: RunEnding.measure(recording()))


def test_the_bar_has_no_gaps_and_little_of_a_wrong_phase() -> None:
    found = phases(keras())
    shown: dict[Phase, float] = {}
    for span in found.spans:
        shown[span.phase] = shown.get(span.phase, 0.0) + (span.end_ms - span.start_ms) / 1000
    assert found.spans[0].start_ms == 0.0
    assert found.spans[-1].end_ms == pytest.approx(found.total_ms)
    assert shown == pytest.approx(of(found), abs=0.1)


def test_a_long_run_has_a_bar_of_limited_length() -> None:
    second = python(0.3, "p.py:2"), during(RunCall.PREDICT, 0.7, "p.py:3", "Model.predict")
    spans = phases(made(*600 * second, to=Run(width=20.0, every=1.0))).spans
    assert 1 <= len(spans) <= MOST_SPANS
    assert all(a.end_ms == b.start_ms for a, b in pairwise(spans))


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


@cases(
    (own_loop(), RunCall.STEP, [(RunCall.FUNCTION, "train_step"), (RunCall.TEST, "test_step")], "train_step"),
    (Run(), RunCall.TRACE, [(RunCall.TRACE, "serve")], "serve"),  # which another thread traces
)
def test_the_step_has_the_name_of_the_function_that_trains(run: Run, kind: RunCall, calls: Any, name: str) -> None:
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
    return made(python(1.0, "load.py:3"), count(rss=3 * 10**9), python(1.0, "load.py:4"))


def ended(error: str, message: str = "", why: str = "exception", into: Run | None = None, **end: Any) -> RunEnding:
    given = (into or run()).recording(why)
    assert given.run is not None
    assert given.run.end is not None
    told = replace(given.run.end, error=error, message=message, **end)
    return RunEnding.measure(replace(given, run=replace(given.run, end=told)))


def killed(signal: int | None, code: int, oom_kills: int = 0, pid: int = PID) -> RunEnding:
    times = RunTimes(START_NS, START_NS + 10**10, pid=pid, oom_kills=oom_kills, limit_bytes=4 * 10**9)
    outcome = Ending(code, signal)
    return RunEnding.measure(run().recording(None, times=times, outcome=outcome, finished=True))


told.add("a log without an end is of a run that goes on", lambda: RunEnding.measure(run().recording(None)))
told[ended] = {
    "an exit is told": ("", "", "exit"),
    "Ctrl-C is an interrupt": ("KeyboardInterrupt", "", "interrupt"),
    "an error of Python is told": "ValueError",
    "of memory of Python": "MemoryError",
    "of memory of a device": "ResourceExhaustedError",
    "an error of TensorFlow is told": "InternalError",
    "a status code says what a general error means": (
        "XlaRuntimeError",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2147483648 bytes.",
    ),
}
told.add("the tensor is read", lambda: ended("ResourceExhaustedError", TENSOR, at=("/job/train.py", 41)))

told[MemoryWanted.of] = {
    "an array of numpy is read": ARRAY,
    "of an odd type, its size in bytes": ARRAY.replace("float64", "object"),
    "something else tells no memory": "something else",
}

told[killed] = {
    "the launcher sees that the kernel killed it": (9, 137, 1),
    "that someone killed it": (9, 137, 0),
    "that the kernel did, through a shell": (None, 137, 1),
    "that it was asked to end, and the kernel killed another process": (15, 143, 1),
    "that it was interrupted": (2, 130, 0),
    "that it ended itself by os._exit": (None, 3, 0),
    "of another process of the run the exit code says nothing": (None, 0, 0, PID + 1),
    "but a kill by the kernel does": (None, 1, 1, PID + 1),
}

TESTED = steps(200, 5.0, LOOP), during(RunCall.EVALUATE, 1.0, "t.py:12", "Model.evaluate"), python(0.1)

told.add("an error in evaluation ends there", lambda: ended("MemoryError", into=made(*TESTED, to=run())))


@told
def an_old_recording_tells_what_the_launcher_saw() -> object:
    host = HostMachine(memory_bytes=8 * 10**9)
    return RunEnding.measure(recording(manifest=manifest(outcome=Ending(0), host=host, finished=True)))


test_run_phases = told.test("run_phases")

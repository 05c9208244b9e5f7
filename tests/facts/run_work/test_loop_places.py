"""The lines that work in the steps of a run beside the call that trains."""

from tests.facts.kit import *
from tests.run_logs import FOLDER, Act, made, place, python, steps
from tfdoctor.facts.run_work.loop_places import LoopPlaces
from tfdoctor.recording.run_log import LoopMakers

told = Told()
LOOP = "t.py:12"


def found(*acts: Act, makers: tuple[LoopMakers, ...] = (), window: HostLines | None = None) -> list[str]:
    run = made(*acts)
    given = run.recording()
    given = replace(given, run=replace(run.log(), makers=makers))
    facts = Chart([given, Trace(()), *([window] if window else [])])
    places = LoopPlaces.measure(given, facts.fact(RunPhases), facts.fact(RunSteps), window)
    told = []
    for one in places.places:
        at = ", ".join(f"{line.at.path}:{line.at.line}" for line in one.group.lines if line.at)
        more = ", rare" * one.rare + ", aside" * one.aside
        told.append(f"{one.callback or 'loop'} at {at}: {one.ms / 1000:.1f} s{more}")
    return told


def between(run: Run, *lines: tuple[str, dict[str, Any]]) -> None:
    """Train 600 steps of 10 ms in a loop of one's own, each followed by 5 ms at each of these lines."""
    for _ in range(600):
        run.steps(1, 10.0, LOOP)
        for at, stack in lines:
            run.python(0.005, at, looped=True, **stack)


def beside(*lines: tuple[str, dict[str, Any]]) -> Act:
    return lambda run: between(run, *lines)


BATCHES = {"callback": "Log.on_train_batch_end"}
EVERY = beside(("t.py:20", {"calls": "numpy.histogram"}), ("log.py:3", {"function": "log", **BATCHES}))

told[found] = {
    "a loop's line, and a callback's": EVERY,
    "lines that wait for input, call a model, or train": beside(
        ("t.py:14", {"work": RunWork.INPUT, "calls": "OwnedIterator.__next__"}),
        ("t.py:14", {}),
        ("t.py:15", {"work": RunWork.MODEL}),
        (LOOP, {}),
    ),
    "costly calls, and writes but those of a callback": beside(
        ("t.py:20", {"calls": "keras.src.layers.layer.Layer.set_weights"}),
        ("t.py:22", {"calls": "builtins.print"}),
        ("log.py:3", {"calls": "builtins.print", **BATCHES}),
    ),
    "rows that are read one by one": beside(("t.py:20", {"calls": "pandas.DataFrame.iterrows", "repeats": True})),
    "waits for TensorFlow's operations": beside(("t.py:20", {"runs": "tensorflow.execute.quick_execute"})),
    "work of long steps": beside(("t.py:20", {"long": True})),
    "work of long steps beside a line of each": beside(("t.py:20", {"long": True}), ("t.py:22", {})),
    "a short run": (steps(20, 10.0, LOOP), python(0.1, "t.py:20", looped=True)),
}  # fmt: skip


@told
def what_makes_the_arguments_is_left_out_and_the_rest_is_aside() -> object:
    makers = (LoopMakers((f"{FOLDER}/t.py", 12), ((18, 19),)),)
    own: Any = ("t.py:18", {}), ("replay.py:4", {"caller": "t.py:19"}), ("t.py:30", {})
    return found(beside(*own), makers=makers)


@told
def what_the_line_that_calls_the_step_calls_makes_its_arguments() -> object:
    """As `agent.learn(memory.sample(64))`, where no loop was read."""
    step = {"step": place("agent.py:50"), "step_call": place("t.py:18")}
    return found(beside(("agent.py:52", step), ("memory.py:4", {"caller": "t.py:18"}), ("log.py:4", {})))


@told
def what_may_change_an_argument_in_a_few_steps_is_told() -> object:
    """As a method that saves a buffer: `memory.save(path)`."""
    makers = (LoopMakers((f"{FOLDER}/t.py", 12), ((18, 19),)),)
    return found(beside(("t.py:18", {"long": True}), ("t.py:19", {})), makers=makers)


def calls_function(every: int) -> Act:
    """Train 600 steps of 10 ms, and call another compiled function after so many steps."""

    def act(run: Run) -> None:
        for number in range(600):
            run.steps(1, 10.0, LOOP)
            if number % every == 0:
                with run.call(RunCall.FUNCTION, "t.py:20", "full_loss"):
                    run.python(0.05, "t.py:20", looped=True, long=every > 1, runs="quick_execute")

    return act


@told
def a_compiled_function_in_few_steps_evaluates_and_one_in_each_step_may_train() -> object:
    return found(calls_function(20)), found(calls_function(1))


@told
def in_a_short_run_the_traced_steps_say_which_lines_take_the_time() -> object:
    own = TimedLine(Location("t.py", 20), 30, 4.0, calls={"numpy.histogram": 30})
    enters = TimedLine(Location("t.py", 12), 90, 6.0, work=LineWork.ENTERING)
    return found(steps(20, 10.0, LOOP), window=HostLines({Stage.HOST: (enters, own)}))


@told
def what_the_run_shows_to_make_arguments_makes_them_in_the_traced_steps_too() -> object:
    """The samples of a window have a line and its caller alone."""
    own = TimedLine(Location("play.py", 4), 30, 4.0, callers={Location("play.py", 9): 30})
    around = (place("play.py:9"), place("t.py:19"))
    acts = steps(20, 10.0, LOOP), python(0.1, "play.py:4", looped=True, around=around)
    makers = (LoopMakers((f"{FOLDER}/t.py", 12), ((18, 19),)),)
    return found(*acts, makers=makers, window=HostLines({Stage.HOST: (own,)}))


def eager(*lines: tuple[str, dict[str, Any]]) -> object:
    """A loop whose steps Python runs one operation at a time."""
    facts = Chart([run := made(beside(*lines)).recording(), Trace(())])
    trained = replace(facts.fact(RunSteps), source=StepSource.EAGER_GRADIENT)
    return [one.group.at for one in LoopPlaces.measure(run, facts.fact(RunPhases), trained, None).places]


STEP = {"step": place("t.py:2"), "step_call": place(LOOP)}
told[eager] = {
    "of a step in a function what is outside of it": (
        ("t.py:5", STEP), ("t.py:20", {"calls": "numpy.histogram"}), ("t.py:21", {"calls": "tensorflow.add"}),
    ),
    "of a callback": (("log.py:3", BATCHES),),
}  # fmt: skip


def test_lines_of_a_step_that_runs_operation_by_operation_are_not_told() -> None:
    with pytest.raises(Unavailable, match="operation by operation"):
        eager(("t.py:20", {}))


def test_a_run_without_steps_has_no_lines_of_a_loop() -> None:
    run = made(python(3.0, "t.py:20")).recording()
    with pytest.raises(Unavailable, match="no training step"):
        LoopPlaces.measure(run, Chart([run, Trace(())]).fact(RunPhases), None, None)


@told
def the_steps_of_a_loop_within_a_graph_need_not_be_known() -> object:
    run = made(beside(("t.py:20", {"calls": "json.dumps"}))).recording()
    phases = Chart([run, Trace(())]).fact(RunPhases)
    return [one.group.calls for one in LoopPlaces.measure(run, phases, None, None).places]


test_loop_places = told.test("loop_places")

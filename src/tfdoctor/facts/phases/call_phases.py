"""The phase of a moment of the run, by the innermost call under way and by what a stack sample shows."""

from tfdoctor.facts.phases.run_course import RunCourse
from tfdoctor.recording.run_log import SeenStack
from tfdoctor.terms.kinds import Phase, RunCall, RunWork

# The phase of the calls whose own time is all of one.
OF_CALL = {
    RunCall.STEP: Phase.STEPS,
    RunCall.TRAIN: Phase.STEPS,
    RunCall.TRACE: Phase.TRACING,
    RunCall.TEST: Phase.EVALUATION,
    RunCall.EVALUATE: Phase.EVALUATION,
    RunCall.PREDICT: Phase.PREDICTION,
    RunCall.SAVE: Phase.SAVING,
    RunCall.COMPILE: Phase.BUILDING,
    RunCall.BUILD: Phase.BUILDING,
    RunCall.ADAPT: Phase.PREPARING,
    RunCall.PROFILER: Phase.PROFILER,
}

# The phase of the script's own work that a sample names.
OF_WORK = {
    RunWork.IMPORTING: Phase.IMPORTS,
    RunWork.BUILDING: Phase.BUILDING,
    RunWork.TRACING: Phase.TRACING,
    RunWork.SAVING: Phase.SAVING,
}

# Phases of the script's own work that are told by nothing but where it lies in the run.
UNKNOWN = (Phase.PREPARING, Phase.OWN)
Shares = tuple[tuple[Phase, float], ...]  # Phases with the share of some time in each; the shares sum to 1
LOOPS = (RunCall.FIT, RunCall.EPOCH)
STARTERS = frozenset({"subprocess"})  # Packages whose functions all start child processes, or wait for them

# Functions of the system that do.
SYSTEM = frozenset(
    f"{module}.{name}"
    for module in ("os", "posix")
    for name in (
        "wait", "wait3", "wait4", "waitid", "waitpid", "system", "_spawnvef", "spawnl", "spawnle", "spawnlp",
        "spawnlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe",
    )
)  # fmt: skip
SLEEP = "time.sleep"  # What a loop calls that asks again and again whether a child has ended


def of_call(course: RunCourse, call: int, number: int) -> Phase | None:
    """Return the phase of all of a call's own time in a bucket; None where the samples in it decide."""
    kind = course.kind(call)
    if kind is not RunCall.FUNCTION:
        return OF_CALL.get(kind)
    if call in course.training:
        # A function that trains later does not train in a bucket that ends before the first step.
        return course.models if course.trains and number < course.first_step else Phase.STEPS
    return next((OF_CALL[kind] for kind in course.around(call) if kind in OF_CALL), None)


def of_loop(course: RunCourse, kind: RunCall, number: int) -> Phase:
    """Return the phase of the own time of Keras' fit, or of an epoch.

    After the last epoch `fit` ends what made its batches: a generator's threads can take ten seconds.
    """
    if kind is RunCall.FIT and number <= course.first_step:
        return Phase.PREPARING
    return Phase.END if kind is RunCall.FIT and number > course.last_work else Phase.BOUNDARIES


def of_sample(course: RunCourse, call: int, stack: SeenStack, number: int) -> Shares:
    """Return the phase of a sample of a call in a bucket, by its number."""
    match course.kind(call):
        case RunCall.FIT | RunCall.EPOCH as kind:
            phase = of_loop(course, kind, number)
            if stack.work is RunWork.SAVING:
                phase = Phase.SAVING
            elif stack.work is RunWork.BUILDING and phase is Phase.PREPARING:
                phase = Phase.BUILDING
        case RunCall.BETWEEN if course.parent(call) in LOOPS:
            phase = Phase.SAVING if stack.work is RunWork.SAVING else Phase.STEPS
        case RunCall.FUNCTION if stack.looped:
            phase = Phase.STEPS
        case RunCall.FUNCTION:
            model = stack.tested or stack.work is RunWork.MODEL
            first = course.trains and number <= course.first_step
            phase = Phase.PREPARING if first and not model else course.models
        case _:
            return _of_script(course, stack, number)
    return ((phase, 1.0),)


def _of_script(course: RunCourse, stack: SeenStack, number: int) -> Shares:
    other = course.log.other_framework is not None
    starting = course.first_user is not None and number < course.first_user
    if not stack.at and (stack.work is RunWork.OTHER or starting):
        phase = Phase.UNNAMED
        if course.first_user is not None and number <= course.first_user:
            phase = Phase.START
        elif course.last_user is not None and number > course.last_user and course.log.end is not None:
            phase = Phase.END
        return ((phase, 1.0),)
    if stack.work in OF_WORK:
        return ((OF_WORK[stack.work], 1.0),)
    if stack.looped and course.own_loop:
        return ((Phase.BOUNDARIES if number > course.last_step else Phase.STEPS, 1.0),)
    tested = stack.tested or (stack.at, stack.caller) in course.tested
    if tested or (stack.work is RunWork.MODEL and not other):
        # A model's call alone, before the first step, only builds the model; in a loop it prepares data.
        alone = not tested and number <= course.first_step
        first = Phase.PREPARING if stack.repeats else Phase.BUILDING
        return ((first if course.trains and alone else course.models, 1.0),)
    # Another framework than TensorFlow trains: the script's own work may be anything.
    shares: Shares = ((Phase.OWN, 1.0),) if other else _of_python(course, stack, number)
    called = [function for function in (stack.calls, stack.runs) if function]
    starts = any(function.partition(".")[0] in STARTERS or function in SYSTEM for function in called)
    # Children that live on while it works with models are not waited for: they log, prepare data, or help others.
    worked, counts, idle = course.first_work, course.children, stack.children
    if worked is not None and idle:
        begin, end = (number, worked) if number <= worked else (min(number, int(course.last_work)), number)
        idle = max(1, *counts[max(0, number - 1) : number + 1]) > min(counts[begin : end + 1])
    if starts or (idle and (stack.calls != SLEEP or stack.repeats)):
        return tuple((Phase.CHILDREN if of in UNKNOWN else of, share) for of, share in shares)
    return shares


def _of_python(course: RunCourse, stack: SeenStack, number: int) -> Shares:
    """Return what the script's own Python in a bucket is, by its time, and by its line after the last step."""
    repeats = stack.at is not None and (stack.at, stack.caller) in course.repeated
    if repeats and number >= course.last_step:
        return ((Phase.BOUNDARIES, 1.0),)
    if number > course.last_work:
        return ((Phase.END, 1.0),)
    between = Phase.BOUNDARIES if course.first_step < number <= course.last_step else Phase.PREPARING
    if number != course.last_work:
        return ((between, 1.0),)
    return ((between, 1.0 - course.tail), (Phase.END, course.tail))

"""The phase of a moment of the run, by the call under way and by what a stack sample shows."""

from dataclasses import dataclass

from tfdoctor.facts.phases.call_tree import CallTree
from tfdoctor.facts.phases.run_course import RunCourse, Shares
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

LOOPS = (RunCall.FIT, RunCall.EPOCH)

STARTERS = frozenset({"subprocess"})  # Packages whose functions all start child processes, or wait for them

# Functions of the system that do.
SYSTEM = frozenset(
    f"{module}.{name}"
    for module in ("os", "posix")
    for name in (
        *("wait", "wait3", "wait4", "waitid", "waitpid", "system", "_spawnvef"),
        *("spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe"),
    )
)

SLEEP = "time.sleep"  # What a loop calls that asks again and again whether a child has ended


@dataclass(frozen=True, slots=True)
class CallPhases:
    """Gives each moment its phase; innermost calls count."""

    tree: CallTree
    course: RunCourse
    finished: bool

    def of_call(self, call: int, number: int) -> Phase | None:
        """Return the phase of all of a call's own time in a bucket; None where the samples in it decide."""
        kind = self.tree.kind(call)
        if kind is not RunCall.FUNCTION:
            return OF_CALL.get(kind)
        if self.tree.trains(call):
            # A function that trains later does not train in a bucket that ends before the first step.
            untrained = self.course.trains and number < self.course.first_step
            return self.course.models if untrained else Phase.STEPS
        return next((OF_CALL[kind] for kind in self.tree.around(call) if kind in OF_CALL), None)

    def in_fit(self, call: int) -> bool:
        """Return whether a call is directly within Keras' fit or an epoch of it."""
        return self.tree.parent(call) in LOOPS

    def of_sample(self, call: int, stack: SeenStack, number: int) -> Shares:
        """Return the phase of a sample of a call in a bucket, by its number."""
        match self.tree.kind(call):
            case RunCall.FIT | RunCall.EPOCH as kind:
                phase = self.of_loop(kind, number)
                if stack.work is RunWork.SAVING:
                    phase = Phase.SAVING
                elif stack.work is RunWork.BUILDING and phase is Phase.PREPARING:
                    phase = Phase.BUILDING
            case RunCall.BETWEEN if self.in_fit(call):
                phase = Phase.SAVING if stack.work is RunWork.SAVING else Phase.STEPS
            case RunCall.FUNCTION if stack.looped:
                phase = Phase.STEPS
            case RunCall.FUNCTION:
                model = stack.tested or stack.work is RunWork.MODEL
                first = self.course.trains and number <= self.course.first_step
                phase = Phase.PREPARING if first and not model else self.course.models
            case _:
                return self._of_script(stack, number)
        return ((phase, 1.0),)

    def of_loop(self, kind: RunCall, number: int) -> Phase:
        """Return the phase of the own time of Keras' fit, or of an epoch.

        After the last epoch `fit` ends what made its batches: a generator's threads can take ten seconds.
        """
        if kind is RunCall.FIT and number <= self.course.first_step:
            return Phase.PREPARING
        over = kind is RunCall.FIT and number > self.course.last_work
        return Phase.END if over else Phase.BOUNDARIES

    def _of_script(self, stack: SeenStack, number: int) -> Shares:
        course = self.course
        starting = course.first_user is not None and number < course.first_user
        if not stack.at and (stack.work is RunWork.OTHER or starting):
            return ((course.without_line(number, finished=self.finished), 1.0),)
        if stack.work in OF_WORK:
            return ((OF_WORK[stack.work], 1.0),)
        if stack.looped and course.own_loop:
            return ((Phase.BOUNDARIES if number > course.last_step else Phase.STEPS, 1.0),)
        tested = stack.tested or (stack.at, stack.caller) in course.tested
        if tested or (stack.work is RunWork.MODEL and not course.other_framework):
            # A model's call alone, before the first step, only builds the model; in a loop it prepares data.
            alone = not tested and number <= course.first_step
            first = Phase.PREPARING if stack.repeats else Phase.BUILDING
            return ((first if course.trains and alone else course.models, 1.0),)
        shares = course.ordinary(stack, number)
        idle = stack.children and course.awaits_children(number)
        if _starts_children(stack) or (idle and (stack.calls != SLEEP or stack.repeats)):
            return tuple((Phase.CHILDREN if of in UNKNOWN else of, share) for of, share in shares)
        return shares


def _starts_children(stack: SeenStack) -> bool:
    called = filter(None, (stack.calls, stack.runs))
    return any(function.partition(".")[0] in STARTERS or function in SYSTEM for function in called)

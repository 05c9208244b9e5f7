"""What makes a run start slowly: a line, its time, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum

from tfdoctor.facts.phases.run_calls import MadeCall
from tfdoctor.facts.run_work.call_overhead import function_name
from tfdoctor.facts.run_work.line_groups import LineGroup
from tfdoctor.rules.slow_start.unrolled_steps import UnrolledSteps
from tfdoctor.terms.humanize import location, milliseconds, number
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Location, Remedy, RunEffect


class CauseKind(StrEnum):
    """What takes the time."""

    MODULE = "import of a module"
    TENSORFLOW = "import of TensorFlow"
    LOADING = "loading again and again"
    WEIGHTS = "weights one by one"
    PYTHON = "Python while building"
    UNROLLED = "training steps one by one in a graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A line that makes the start slow; ``left`` is the share of its time that remains after the change."""

    kind: CauseKind
    at: Location
    time_ms: float
    name: str = ""  # of the module or the function
    times: int = 1
    left: float = 0.0

    @property
    def imports(self) -> bool:
        """Whether the line imports a module."""
        return self.kind in {CauseKind.MODULE, CauseKind.TENSORFLOW}

    @property
    def saved_ms(self) -> float:
        """What the change saves of the run, in ms."""
        return self.time_ms * (1.0 - self.left)

    @property
    def summary(self) -> str:
        """Say what takes how long, and where."""
        at, time = location(self.at), milliseconds(self.time_ms)
        match self.kind:
            case CauseKind.MODULE:
                return f"The import of {self.name} at {at} takes {time}"
            case CauseKind.TENSORFLOW:
                return f"The import of TensorFlow at {at} takes {time}"
            case CauseKind.LOADING:
                return f"A loop calls {self.name} {number(self.times)} times at {at}, which takes {time}"
            case CauseKind.WEIGHTS:
                return f"Weights are set one by one at {at}, which takes {time}"
            case CauseKind.PYTHON:
                return f"A loop in Python at {at} takes {time} while the model is built"
            case CauseKind.UNROLLED:
                steps = f"{number(self.times)} training steps, made at {at}"
                return f"Tracing {self.name} takes {time}: its graph has {steps}"

    @property
    def remedy(self) -> Remedy:
        """The change, at the line."""
        action, code = REMEDIES[self.kind]
        written = code.replace("MODULE", self.name).replace("FUNCTION", self.name)
        return Remedy(action, f"# {location(self.at)}\n{written}", self.at)

    @property
    def effect(self) -> RunEffect:
        """The time of the line in the run; an upper bound, for what is moved may be needed elsewhere."""
        unrolled = self.kind is CauseKind.UNROLLED
        return RunEffect(
            phase=Phase.TRACING if unrolled else Phase.IMPORTS if self.imports else Phase.BUILDING,
            of=ms(self.time_ms),
            subject=location(self.at),
            scales=self.left,
            times=1 if unrolled else self.times,
            bound=Bound.AT_MOST,
        )

    @classmethod
    def of_call(cls, call: MadeCall, at: Location) -> "Cause":
        """Return the cause of a call that a loop repeats."""
        return cls(
            kind=CauseKind.LOADING,
            at=at,
            time_ms=call.ms,
            name=function_name(call),
            times=call.count,
            left=1.0 / call.count,
        )

    @classmethod
    def of_steps(cls, steps: UnrolledSteps) -> "Cause":
        """Return the cause of a graph that has many training steps: tracing one of them remains."""
        return cls(
            kind=CauseKind.UNROLLED, at=steps.at, time_ms=steps.ms, name=steps.name,
            times=steps.steps, left=1.0 / steps.steps,
        )  # fmt: skip

    @classmethod
    def of_group(cls, kind: CauseKind, group: LineGroup, at: Location, name: str = "") -> "Cause":
        """Return the cause of sampled lines."""
        return cls(kind=kind, at=at, time_ms=group.ms, name=name)


TF_RANGE = """\
for step in tf.range(steps):  # not range(steps): TensorFlow runs the loop, and its body is traced once
    train_step(x[step], y[step])"""

IMPORT_LATER = """\
def main():
    import MODULE  # only where it is needed"""

LOCAL_DISK = """\
# in the shell, once: python -m compileall -q "$(python -c 'import site; print(site.getsitepackages()[0])')"
# and the environment on a local disk"""

LOAD_ONCE = """\
model = keras.models.load_model(path)  # FUNCTION once, before the loop
for item in items:
    use(model, item)"""

ALL_WEIGHTS = """\
model.load_weights(path)  # or model.set_weights(arrays): all at once"""

VECTORIZED = """\
table = np.stack([vectors[word] for word in words])  # one array, then one constant
embedding = keras.layers.Embedding(*table.shape, embeddings_initializer=keras.initializers.Constant(table))"""

REMEDIES = {
    CauseKind.MODULE: ("Import the module where it is needed, or not at all", IMPORT_LATER),
    CauseKind.TENSORFLOW: ("Install the packages on a local disk, with compiled files", LOCAL_DISK),
    CauseKind.LOADING: ("Load it once, before the loop", LOAD_ONCE),
    CauseKind.WEIGHTS: ("Set all weights at once", ALL_WEIGHTS),
    CauseKind.UNROLLED: ("Let TensorFlow run the loop that holds this line", TF_RANGE),
    CauseKind.PYTHON: ("Compute with whole arrays while the model is built", VECTORIZED),
}

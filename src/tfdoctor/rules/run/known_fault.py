import re

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

__doc__, CODE = page(__file__)

# Functions of Keras 3 that train on a batch (keras/src/backend/tensorflow/trainer.py).
OWN = re.compile(r"one_step_on_iterator|multi_step_on_iterator|train_function")
NUMBER = re.compile(r"(\d+)\.(\d+)")  # The parts of a version that a fault depends on


class BatchTracing(Record):
    """The calls of train_on_batch of a function of Keras; ``again_ms`` are its traces but the first, in the run."""

    versions: Mapping[str, tuple[int, int]]  # by package; those that the script imported
    texts: Mapping[str, str]  # the same as written
    calls: int = 0
    tracings: int = 0
    again_ms: float | None = None
    name: str = ""
    at: Location | None = None

    @property
    def share(self) -> float:
        """The share of the calls that traced, 0 to 1."""
        return min(1.0, self.tracings / self.calls) if self.calls else 0.0

    @classmethod
    def measure(cls, recording: Recording, traces: RunTraces | None) -> Self:
        """Read what the agent counted."""
        manifest = recording.manifest
        if manifest is None or not manifest.versions:
            raise Unavailable("the versions of the libraries were not recorded")
        known = {name: NUMBER.match(text) for name, text in manifest.versions.items()}
        versions = {name: (int(m[1]), int(m[2])) for name, m in known.items() if m}
        functions = [one for one in manifest.steps.functions if OWN.fullmatch(one.name)]
        if not functions or manifest.steps.source != StepSource.KERAS_TRAIN_ON_BATCH:
            return cls(versions, manifest.versions)
        traced = max(functions, key=lambda one: one.tracings)
        at = Places.of(recording)(traced.at)
        same = (
            one.again_ms for one in (traces.functions if traces else ()) if (one.name, one.at) == (traced.name, at)
        )
        return cls(versions, manifest.versions, traced.calls, traced.tracings, next(same, None), traced.name, at)


KERAS = "keras"

# Versions of Keras between which train_on_batch gives its function a new generator in each call (tf 67033).
FIRST, REPAIRED = (3, 0), (3, 7)


class Limits(RuleLimits):
    share: float = share_limit(0.9)
    calls: float = limit(10.0)


def check(tracing: BatchTracing, limits: Limits = Limits()) -> Verdict:
    """Look for the sign of the fault of the version in use."""
    version = tracing.versions.get(KERAS)
    if version is None or not FIRST <= version < REPAIRED:
        known = (f"{name} {tracing.texts[name]}" for name in ("tensorflow", KERAS) if name in tracing.texts)
        used = " and ".join(known)
        used = f"{used} that slows training" if used else "the libraries in use"
        return Healthy(summary=f"No fault is known of {used}", concern=Concern.RUN)
    keras, where = f"Keras {tracing.texts[KERAS]}", f" at {location(tracing.at)}" if tracing.at else ""
    # the time of all traces but the first, about the same time as any other finding on this function
    effect = RunEffect(
        phase=Phase.TRACING,
        of=ms(tracing.again_ms or 0.0),
        subject=f"{tracing.name} {location(tracing.at)}" if tracing.at else tracing.name,
        recurs=Recurrence.PER_STEP,
        times=max(1, tracing.tracings - 1),
        bound=Bound.AT_MOST,
    )
    return judged(
        Measure("calls of train_on_batch", count(tracing.calls), count(limits.calls)),
        Measure.share("share of these calls that trace", tracing.share, limits.share),
        healthy=f"{keras} traces train_on_batch in each call, which this run does not show",
        finding=f"{keras} traces its training function in {number(tracing.tracings)} of {number(tracing.calls)} "
        f"calls of train_on_batch{where}, a fault that Keras 3.7 repairs",
        remedies=[Remedy("Install Keras 3.7 or later", CODE["upgrade"], tracing.at)],
        run_effects=[effect] if tracing.again_ms else [],
        severity=None if tracing.again_ms else Severity.WARNING,
        concern=Concern.RUN,
    )

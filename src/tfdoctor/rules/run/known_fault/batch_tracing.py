"""The versions of the run, and the calls of train_on_batch that traced Keras' own function again."""

import re

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

# Functions of Keras 3 that train on a batch (keras/src/backend/tensorflow/trainer.py).
OWN = re.compile(r"one_step_on_iterator|multi_step_on_iterator|train_function")


class BatchTracing(Record):
    """The calls of train_on_batch of a function of Keras; ``again_ms`` are its traces but the first, in the run."""

    versions: Mapping[str, str]  # by package; those that the script imported
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
        functions = [one for one in (traces.functions if traces else ()) if OWN.fullmatch(one.name)]
        log = recording.run
        if not functions or log is None or manifest.steps.source != StepSource.KERAS_TRAIN_ON_BATCH:
            return cls(manifest.versions)
        own = {str(call.id) for call in log.calls.values() if call.name == StepSource.KERAS_TRAIN_ON_BATCH}
        calls = sum(count for bucket in log.buckets for call, count in bucket.entered.items() if call in own)
        traced = max(functions, key=lambda one: one.tracings)
        return cls(manifest.versions, calls, traced.tracings, traced.again_ms, traced.name, traced.at)

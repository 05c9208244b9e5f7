"""The versions of the run, and the calls of train_on_batch that traced Keras' own function again."""

import re

from tfdoctor.facts.phases.run_calls import TracedDefinition
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

# Functions of Keras 3 that train on a batch (keras/src/backend/tensorflow/trainer.py).
OWN = re.compile(r"one_step_on_iterator|multi_step_on_iterator|train_function")


class BatchTracing(Record):
    """The calls of train_on_batch, and the function of Keras that they traced most often; None where none did."""

    versions: Mapping[str, str]  # by package; those that the script imported
    calls: int = 0
    traced: TracedDefinition | None = None

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
        return cls(manifest.versions, calls, max(functions, key=lambda one: one.tracings))

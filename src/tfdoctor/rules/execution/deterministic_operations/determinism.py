"""Whether TensorFlow was told to compute the same result in every run, and where."""

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

# Environment variables of TensorFlow 2.1 to 2.7 and of 1.14 to 2.0; later versions still read the first.
VARIABLES = ("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC")


class Determinism(Record):
    """What switched deterministic operations on: a call at a line, or a variable; neither where they are off."""

    by_call: bool = False
    variable: str = ""
    at: Location | None = None

    @classmethod
    def measure(cls, recording: Recording, program: Program | None) -> Self:
        """Read the environment and what the agent noted.

        Raises:
            Unavailable: the run was not recorded by tfdoctor.
        """
        if recording.manifest is None:
            raise Unavailable("the trace does not contain the settings of the run")
        aids = (program.settings.debugging if program else None) or ()
        aid = next((aid for aid in aids if aid.aid == "op_determinism"), None)  # enable_op_determinism
        values = recording.manifest.environment
        on = (name for name in VARIABLES if values.get(name, "").lower() in {"1", "true"})
        return cls(aid is not None, next(on, ""), Places.of(recording)(aid.at) if aid else None)

"""What tracing tf.functions took over the whole run, beyond the traced steps."""

from tfdoctor.facts.step_time.python_work import changed
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording


class TracedInRun(Record):
    """A tf.function that was traced in several calls of the run.

    ``step_ms`` is the time of tracing it again, per training step: the calls that traced it, without the first,
    times what such a call takes more than others. Their times are medians of calls outside of the traced window.
    ``made`` is the number of function objects that share its definition, 0 unknown.
    """

    name: str
    calls: int
    traced: int  # calls that traced it
    last: int  # the number of the last of these calls, from 0 on
    step_ms: float
    changed: tuple[str, ...] = ()  # an argument's value in each trace; () where not recorded
    at: Location | None = None
    made: int = 0
    in_fit: bool = False  # Keras' fit calls it

    @property
    def remade(self) -> bool:
        """Whether most traces are first traces of a new function object: the function itself is made again."""
        return 2 * self.made > self.traced


class RunTracing(Record):
    """The functions that were traced in several calls, as far as their time is known."""

    functions: tuple[TracedInRun, ...] = ()

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Relate the calls that the recording counted to its training steps.

        Raises:
            Unavailable: tfdoctor did not see the calls of the run.
        """
        seen = recording.manifest.steps if recording.manifest else None
        if seen is None or not seen.seen:
            raise Unavailable("only `tfdoctor profile` counts the calls of the whole run")
        locate, in_fit = Places.of(recording), seen.source == StepSource.KERAS_FIT
        return cls(
            tuple(
                TracedInRun(
                    one.name, one.calls, one.tracings, max(one.traced),
                    (one.tracings - 1) * max(0.0, one.traced_ms - one.call_ms) / seen.seen,
                    changed(one.name, recording.program), locate(one.at), one.made, in_fit,
                )
                for one in seen.functions
                if one.traced and one.traced_ms and one.call_ms and one.tracings > 1
            )
        )  # fmt: skip

"""The tf.functions that were traced in the run: how often, how long, and at which line."""

from dataclasses import dataclass

from tfdoctor.kinds import RunCall
from tfdoctor.verdict import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedDefinition:
    """All calls that traced a function of one name and line: new function objects of a line are one function.

    ``ms`` is their time without that of as many usual calls; ``first_ms`` that of the first one.
    """

    name: str
    at: Location | None  # the user's line that calls it
    tracings: int
    ms: float
    first_ms: float
    made: int = 1  # function objects
    within: RunCall = RunCall.SCRIPT
    starts_s: tuple[float, ...] = ()

    @property
    def again_ms(self) -> float:
        """The time of all but the first."""
        return max(0.0, self.ms - self.first_ms)


@dataclass(frozen=True, slots=True)
class RunTraces:
    """The functions that were traced, those that took most first."""

    functions: tuple[TracedDefinition, ...]
    total_ms: float = 0.0

"""The calls of the run: fit, evaluate, predict, compile, save and others, by the user's line that makes them."""

from dataclasses import dataclass

from tfdoctor.kinds import RunCall
from tfdoctor.verdict import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """All calls of a kind that a line of the user's makes; times in ms of the run.

    ``ms`` contains what the calls call in turn, except ``nested_ms``, which is that of other kinds within them.
    ``within`` is the kind of the call around them. ``times_ms`` are single calls in order, of those that the
    recording tells alone. ``examples`` is their number per call, where known.
    """

    call: RunCall
    name: str  # "Model.predict"
    at: Location | None
    count: int
    ms: float
    within: RunCall = RunCall.SCRIPT
    function: str = ""  # the user's function that holds the line
    looped: bool = False  # made again and again at this line by a loop of the user's
    nested_ms: float = 0.0
    times_ms: tuple[float, ...] = ()
    examples: float | None = None
    batches: float | None = None
    before_training: bool = False
    after_training: bool = False
    models: int | None = None  # different model objects that it was made on; None is unknown

    @property
    def each_ms(self) -> float:
        """The mean time of one call."""
        return self.ms / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class RunCalls:
    """The calls of the run by line, those that take most first, and its epochs."""

    calls: tuple[MadeCall, ...]
    epochs: int = 0  # that were begun, of fit or as passes over a training dataset
    planned_epochs: int | None = None  # as fit was told; None is unknown
    fits: int = 0

    def of(self, *kinds: RunCall) -> tuple[MadeCall, ...]:
        """Return the calls of these kinds, those that take most first."""
        return tuple(call for call in self.calls if call.call in kinds)

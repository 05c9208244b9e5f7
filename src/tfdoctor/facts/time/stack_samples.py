"""Where Python was between the calls that train, as the recorder saw it by looking now and then."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.recording.program import FedCall
from tfdoctor.verdict import Location


@dataclass(frozen=True, slots=True)
class SampledLine:
    """A line at which Python was seen, and how often."""

    at: Location | None
    seen: int
    callback: str = ""  # "Weights.on_train_batch_end": what of a Keras callback ran
    makes: bool | None = None  # it makes the arguments of the function that trains; None: not known


@dataclass(frozen=True, slots=True)
class StackSamples:
    """What the trainer's thread was at, most often first; looks while TensorFlow trained are left out.

    ``anew`` has the shapes of the arguments that were other arrays at the next call.
    """

    places: tuple[SampledLine, ...] = ()
    collecting_ms: float = 0.0  # Python's garbage collector, over the whole window
    called_at: Location | None = None
    anew: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def measure(cls, recording: Recording, framework: Framework) -> Self:
        """Read the program record.

        Raises:
            Unavailable: the recording does not tell.
        """
        record = recording.program.python if recording.program else None
        if record is None:
            raise Unavailable(
                f"where Python was between two steps was not recorded{framework.with_tfdoctor}"
            )
        place, fed = Places.of(recording), record.fed or FedCall()
        return cls(
            tuple(
                SampledLine(place(line.at), line.seen, line.callback, line.makes)
                for line in record.places
            ),
            record.collecting_ms,
            place(fed.at),
            tuple(argument.shape for argument in fed.arguments if argument.anew),
        )

    @property
    def sample_count(self) -> int:
        """How often Python was seen outside of the calls that train."""
        return sum(place.seen for place in self.places)

    @property
    def makers(self) -> tuple[SampledLine, ...]:
        """The lines that make what the function that trains is given."""
        return tuple(place for place in self.places if place.makes) if self.anew else ()

    def share(self, places: Iterable[SampledLine]) -> float:
        """Return which part of the looks fell on some places, 0 to 1."""
        return sum(place.seen for place in places) / self.sample_count if self.sample_count else 0.0

"""Where Python was between the training calls, by samples of its stack."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.sampled_steps import SampledSteps
from tfdoctor.facts.step_time.timed_line import LineWork, SlowCall, TimedLine, slow_call, work_of
from tfdoctor.recording import Recording
from tfdoctor.recording.program import FedCall, ProgramRecord, SeenPlace
from tfdoctor.terms.verdict import Location


@dataclass(frozen=True, slots=True)
class StackSamples:
    """The lines of the trainer's thread, the most frequent first, without samples taken while TensorFlow trained.

    ``new_arguments`` has the shapes of the arguments that were other arrays at the next call. ``models_at`` are
    the lines of models whose results decide what these arguments are: actions in a game, which fill a memory.
    """

    places: tuple[TimedLine, ...] = ()
    called_at: Location | None = None
    new_arguments: tuple[tuple[int, ...], ...] = ()
    function: str = ""  # the training function's name in the trace; "" is unknown
    models_at: frozenset[Location] = frozenset()

    @classmethod
    def measure(cls, recording: Recording, framework: Framework, sampled: SampledSteps | None) -> Self:
        """Read the program record; of calls that were traced for samples only, those in steady calls.

        Raises:
            Unavailable: the recording has no stack samples.
        """
        record = recording.program.python if recording.program else None
        record = sampled.python if sampled else record
        if record is None:
            cure = "" if recording.run else framework.with_tfdoctor
            raise Unavailable(f"the stack of Python between two steps was not sampled{cure}")
        locate, fed = Places.of(recording), record.fed or FedCall()
        return cls(
            tuple(
                TimedLine(locate(one.at), one.seen, 0.0, one.callback, {one.calls: one.seen}, makes=one.makes)
                for one in record.places
                if not one.inside
            ),
            locate(fed.at),
            tuple(argument.shape for argument in fed.arguments if argument.new_object),
            fed.function,
            frozenset(
                at for one in record.places if _runs_model(one, fed, recording.program) and (at := locate(one.at))
            ),
        )

    @property
    def sample_count(self) -> int:
        """The number of stack samples outside of the training calls."""
        return sum(place.seen for place in self.places)

    @property
    def makers(self) -> tuple[TimedLine, ...]:
        """The lines that make the arguments of the training function, other than mostly by calls that are slow."""
        slow = Counter[Location | None]()
        for place in self.places:
            slow[place.at] += place.seen if place.call else -place.seen
        made = (one for one in self.places if one.makes and not one.call and slow[one.at] < 0)
        return tuple(made) if self.new_arguments else ()

    def share(self, places: Iterable[TimedLine]) -> float:
        """Return the share of the stack samples at these places, 0 to 1."""
        return sum(place.seen for place in places) / self.sample_count if self.sample_count else 0.0


def _runs_model(line: SeenPlace, fed: FedCall, program: ProgramRecord | None) -> bool:
    """Say whether a line that makes the arguments calls a model, or a compiled function that reads variables."""
    if not line.makes or line.at == fed.at:
        return False
    if work_of(line) is not LineWork.ENTERING:
        return slow_call(line.calls) in {SlowCall.PREDICT, SlowCall.MODEL}
    graphs = program.graphs if program else ()
    others = (one for one in graphs if not (one.outer or one.kind == "dataset" or one.name == fed.function))
    return any(operation.type == READ for graph in others for operation in graph.operations)


READ = "ReadVariableOp"  # TensorFlow's operation that reads a variable, such as the weights of a layer

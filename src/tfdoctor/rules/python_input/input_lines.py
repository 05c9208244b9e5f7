"""The user's lines that make input in Python, by samples of the stacks of all threads."""

from collections import Counter

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.sampled_steps import SampledSteps
from tfdoctor.recording import Recording
from tfdoctor.recording.program import SeenPlace

# Packages of Python's whose innermost function waits for another thread or process.
WAITING = ("threading", "queue", "multiprocessing", "concurrent")
# The operations of tf.py_function and tf.numpy_function, which run Python within a graph.
PYTHON_OPERATIONS = {"PyFunc", "EagerPyFunc"}
# TensorFlow's module that runs the Python of those operations and of tf.data's generators.
SHARED_ENTRY = "script_ops"
MOST_LINES, OTHERS = 8, "other lines"  # Lines that a finding shows, and what the rest is called


class InputLine(Record):
    """A line that makes input: how often it was sampled, and most often called from and calling what."""

    at: Location
    seen: int
    caller: Location | None = None
    calls: str = ""  # "numpy.lib._npyio_impl.NpzFile.__getitem__"; "" is the line itself
    certain: bool = True  # it makes input; not of the user's own threads, which may do something else


class InputLines(Record):
    """The innermost lines of the user's in the Python that makes input, the most frequent first.

    Waits for other threads are left out. Where input waits more than it works, the user's own threads count too.
    ``threads`` is how many threads beside the trainer's work in such lines at a time, in the mean of the samples.
    """

    lines: tuple[InputLine, ...]
    threads: float = 0.0

    @classmethod
    def measure(
        cls, recording: Recording, framework: Framework, program: Program | None, sampled: SampledSteps | None
    ) -> Self:
        """Read the program record; of calls that were traced for samples only, those in steady calls.

        Raises:
            Unavailable: the recording has no samples of these threads, they show no line of the user's, or the
                lines cannot be told from those of a training function's own Python.
        """
        record = recording.program.python if recording.program else None
        record = sampled.python if sampled else record
        if record is None or record.others is None:
            raise Unavailable(f"the threads that make input were not sampled{framework.with_tfdoctor}")
        making = [place for place in (*record.places, *record.others) if place.entry]
        if program and any(operation.type in PYTHON_OPERATIONS for operation in program.operations):
            making = [place for place in making if SHARED_ENTRY not in place.entry]
            if not making:
                raise Unavailable("the training function runs Python as well, as input may")
        works = [place for place in making if not _waits(place)]
        others = [place for place in record.others if not _waits(place)]
        if sum(place.seen for place in works) * 2 < sum(place.seen for place in making):
            works += [place for place in others if not place.entry]
        if not works:
            why = "no sample shows a line of the script that makes input"
            raise Unavailable(f"{why}, and those of worker processes are not sampled")
        callers: defaultdict[Location, Counter[Location | None]] = defaultdict(Counter)
        calls, locate = defaultdict[Location, Counter[str]](Counter), Places.of(recording)
        for place in works:
            if at := locate(place.at):
                callers[at][locate(place.caller)] += place.seen
                calls[at][place.calls] += place.seen
        certain = {locate(place.at) for place in works if place.entry}
        lines = (
            InputLine(at, own.total(), own.most_common(1)[0][0], calls[at].most_common(1)[0][0], at in certain)
            for at, own in callers.items()
        )
        beside = sum(place.seen for place in others if place.entry)
        instants = sum(place.seen for place in record.places)  # the trainer's thread is in every sample
        threads = beside / instants if instants else 0.0
        return cls(tuple(sorted(lines, key=lambda line: -line.seen)), threads)

    @property
    def samples(self) -> int:
        """The number of samples in these lines."""
        return sum(line.seen for line in self.lines)

    @property
    def heaviest(self) -> tuple[InputLine, ...]:
        """The lines that call the function with most of the samples; a line that takes the time itself is alone.

        Of lines that may do something else than make input, none.
        """
        groups: dict[str | Location, list[InputLine]] = {}
        for line in self.lines:
            if line.certain:
                groups.setdefault(line.calls or line.at, []).append(line)
        return tuple(max(groups.values(), key=lambda lines: self.share(*lines), default=[]))

    def takes(self, at: Location | None) -> str:
        """Return a clause that names the function, or line, with most of the samples.

        Lines of the file of ``at`` are called by their numbers alone.
        """
        heavy, path = self.heaviest, at.path if at else None
        places = [f"line {one.at.line}" if one.at.path == path else location(one.at) for one in heavy]
        takes = f"takes {percent(self.share(*heavy))} of the input's Python"
        if not heavy[0].calls:
            return f": {places[0]} {takes}"
        if len(heavy) > 1:
            shares = (percent(self.share(line)) for line in heavy)
            places = [f"{share} in {place}" for share, place in zip(shares, places, strict=True)]
        return f": {heavy[0].calls} {takes} ({', '.join(places)})"

    def share(self, *lines: InputLine) -> float:
        """Return the share of the samples at these lines, 0 to 1."""
        return sum(line.seen for line in lines) / self.samples

    def table(self, python_ms: float) -> Table:
        """Divide so much Python among the lines that the stack samples show."""
        rows = [(line.at, line.caller or "-", line.calls or "-", line.seen) for line in self.lines[:MOST_LINES]]
        others = sum(line.seen for line in self.lines[MOST_LINES:])
        return Table.of(
            (*rows, *([(OTHERS, "-", "-", others)] if others else ())),
            ("your line", lambda row: row[0]),
            ("called at", lambda row: row[1]),
            ("calls", lambda row: row[2]),
            ("share of the samples", lambda row: ratio(row[3] / self.samples)),
            ("time per step, estimated", lambda row: ms(row[3] / self.samples * python_ms)),
        )


def _waits(place: SeenPlace) -> bool:
    return place.runs.partition(".")[0] in WAITING

"""The user's lines that make input in Python, by samples of the stacks of all threads."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places, Program
from tfdoctor.facts.step_time.sampled_steps import SampledSteps
from tfdoctor.facts.step_time.timed_line import TimedLine, lines_of

WAITING = ("threading", "queue", "multiprocessing", "concurrent")  # Packages in which a thread waits for others
PYTHON_OPERATIONS = {"PyFunc", "EagerPyFunc"}  # Those of tf.py_function and tf.numpy_function, within a graph
SHARED_ENTRY = "script_ops"  # TensorFlow's module that runs the Python of these, and of tf.data's generators
MOST_LINES, OTHERS = 8, "other lines"  # Lines that a finding shows, and what the rest is called


class InputLines(Record):
    """The innermost lines of the user's in the Python that makes input, the most frequent first.

    Waits for other threads are left out. Where input waits more than it works, the user's own threads count too:
    of lines that may do something else, ``makes`` is False.
    """

    lines: tuple[TimedLine, ...]
    threads: float = 0.0  # beside the trainer's that make input at a time, in the mean of the samples
    unknown: str = ""  # why none is known

    @classmethod
    def measure(
        cls, recording: Recording, framework: Framework, program: Program | None, sampled: SampledSteps | None
    ) -> Self:
        """Read the program record; of calls that were traced for samples only, those in steady calls.

        Raises:
            Unavailable: no samples show lines that make input, or they may be those of a function's own Python.
        """
        whole = recording.program.python if recording.program else None
        record = sampled.python if sampled else whole
        if record is None or record.others is None:
            raise Unavailable(f"the threads that make input were not sampled{framework.with_tfdoctor}")
        making = [place for place in (*record.places, *record.others) if place.entry]
        if program and any(operation.type in PYTHON_OPERATIONS for operation in program.operations):
            making = [place for place in making if SHARED_ENTRY not in place.entry]
            if not making:
                raise Unavailable("the training function runs Python as well, as input may")
        works, others = (
            [place for place in places if place.runs.partition(".")[0] not in WAITING]
            for places in (making, record.others)
        )
        if sum(place.seen for place in works) * 2 < sum(place.seen for place in making):
            works += [place for place in others if not place.entry]
        if not works:
            why = "no sample shows a line of the script that makes input"
            raise Unavailable(f"{why}, and those of worker processes are not sampled")
        locate = Places.of(recording)
        certain = {locate(place.at) for place in works if place.entry}
        lines = lines_of(((replace(one, callback=""), None, one.seen) for one in works if one.at), locate)
        beside = sum(place.seen for place in others if place.entry)
        instants = sum(place.seen for place in record.places)  # the trainer's thread is in every sample
        return cls(
            tuple(replace(line, makes=line.at in certain) for line in lines), beside / instants if instants else 0.0
        )

    @property
    def seen(self) -> int:
        """The number of samples in these lines."""
        return sum(line.seen for line in self.lines)

    def heaviest(self, least_samples: float) -> tuple[Sequence[TimedLine], float]:
        """Return the lines that call the function with most samples, or that line itself, and their share of all.

        Of lines that may do something else than make input, none; none for too few samples.
        """
        certain = (one for one in self.lines if one.makes is not False and self.seen >= least_samples)
        groups = by_key((line.main_call or line.at, line) for line in certain)
        heavy = max(groups.values(), key=lambda lines: sum(line.seen for line in lines), default=[])
        return heavy, sum(line.seen for line in heavy) / max(1, self.seen)

    def takes(self, heavy: Sequence[TimedLine], share: float, at: Location | None) -> str:
        """Return a clause that names the function, or line, of lines: by their numbers in the file of ``at``."""
        path = at.path if at else None
        places = [f"line {one.at.line}" if one.at and one.at.path == path else location(one.at) for one in heavy]
        takes = f"takes {percent(share)} of the input's Python"
        if not heavy[0].main_call:
            return f": {places[0]} {takes}"
        if len(heavy) > 1:
            shares = (percent(one.seen / self.seen) for one in heavy)
            places = [f"{share} in {place}" for share, place in zip(shares, places, strict=True)]
        return f": {heavy[0].main_call} {takes} ({', '.join(places)})"

    def table(self, python_ms: float) -> Table:
        """Divide so much Python among the lines that the stack samples show."""
        if self.unknown:
            return Table(("lines that take the time",), ((f"unknown, because {self.unknown}",),))
        others = sum(line.seen for line in self.lines[MOST_LINES:])

        def called(line: TimedLine) -> Location | None:  # none where most samples show no caller of the user's
            known = list(line.callers.values())
            return line.caller if known and known[0] >= line.seen - sum(known) else None

        return Table.of(
            (*self.lines[:MOST_LINES], *([TimedLine(None, others)] if others else ())),
            ("your line", lambda one: one.at or OTHERS),
            ("called at", lambda one: called(one) or "-"),
            ("calls", lambda one: one.main_call or "-"),
            ("share of the samples", lambda one: ratio(one.seen / self.seen)),
            ("time per step, estimated", lambda one: ms(one.seen / self.seen * python_ms)),
        )

"""The marks that the agent leaves in a trace, read with TensorFlow's own schema."""

from tests.capture.running import Run
from tests.kit import *
from tfdoctor.trace.wire import xplane_pb2


@dataclass(frozen=True, order=True)
class Mark:
    """A marker, or the end of the window."""

    start_ps: int
    name: str
    duration_ps: int
    stats: tuple[tuple[str, int], ...]

    def stat(self, name: str) -> int:
        return dict(self.stats)[name]


@cache
def _found(trace: Path) -> tuple[list[Mark], set[str]]:
    """Return the markers of a trace by time, and what tf.data called the datasets of the pipelines that ran."""
    found, named = [], set()
    for plane in xplane_pb2().XSpace.FromString(trace.read_bytes()).planes:
        stats = {key: value.name for key, value in plane.stat_metadata.items()}
        names = {key: value.name for key, value in plane.event_metadata.items() if WANTED.match(value.name)}
        for line, event in ((one, event) for one in plane.lines for event in one.events):
            if event.metadata_id not in names:
                continue
            of_event = {stats[stat.metadata_id]: stat for stat in event.stats}
            if (name := names[event.metadata_id]).startswith("Iterator::"):
                named |= {one.str_value or stats.get(one.ref_value, "") for one in [of_event.get("name")] if one}
            # One with other stats is a tf.function of the user's that is called train.
            elif not event.duration_ps or not of_event or "_r" in of_event:
                values = {key: stat.int64_value or stat.uint64_value for key, stat in of_event.items()}
                start_ps = line.timestamp_ns * 1000 + event.offset_ps
                found.append(Mark(start_ps, name, event.duration_ps, tuple(sorted(values.items()))))
    return sorted(found), named


WANTED = re.compile("Iterator::|(train|test|tfdoctor_end)$")


def marks(trace: Path) -> list[Mark]:
    """Return the markers of a trace by time; the last one should be the end of the window."""
    return _found(trace)[0]


def numbers(run: Run) -> list[int]:
    """Return the numbers of the marked steps that were steps, of a window that has its end."""
    (trace,) = run.recording.traces
    found = marks(trace)
    assert found[-1].name == "tfdoctor_end"
    numbers = [mark.stat("step_num") for mark in found if mark.name == "train"]
    assert len(set(numbers)) == len(numbers)
    return [number for number in numbers if number not in run.manifest.steps.discarded]


def iterator_names(trace: Path) -> set[str]:
    """Return what tf.data called the datasets of the pipelines that ran."""
    return _found(trace)[1]

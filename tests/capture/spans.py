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


def _events(trace: Path, wanted: str) -> Iterator[tuple[str, int, int, dict[str, Any], Any]]:
    """Yield the name, start and duration of each event whose name matches, its stats by name, and these names."""
    for plane in xplane_pb2().XSpace.FromString(trace.read_bytes()).planes:
        stats = {key: value.name for key, value in plane.stat_metadata.items()}
        names = {key: value.name for key, value in plane.event_metadata.items() if re.match(wanted, value.name)}
        for line, event in ((one, event) for one in plane.lines for event in one.events):
            if event.metadata_id in names:
                start_ps = line.timestamp_ns * 1000 + event.offset_ps
                of_event = {stats[stat.metadata_id]: stat for stat in event.stats}
                yield names[event.metadata_id], start_ps, event.duration_ps, of_event, stats


def marks(trace: Path) -> list[Mark]:
    """Return the markers of a trace by time; the last one should be the end of the window."""
    found = []
    for name, start_ps, duration_ps, stats, _ in _events(trace, "(train|test|tfdoctor_end)$"):
        # One with other stats is a tf.function of the user's that is called train.
        if not duration_ps or not stats or "_r" in stats:
            values = tuple(sorted((key, stat.int64_value or stat.uint64_value) for key, stat in stats.items()))
            found.append(Mark(start_ps, name, duration_ps, values))
    return sorted(found)


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
    return {
        stats["name"].str_value or texts.get(stats["name"].ref_value, "")
        for _, _, _, stats, texts in _events(trace, "Iterator::")
        if "name" in stats
    }

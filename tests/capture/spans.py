"""The marks that the agent leaves in a trace, read with TensorFlow's own schema."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True, order=True)
class Mark:
    """A marker, or the end of the window."""

    start_ps: int
    name: str
    duration_ps: int
    stats: tuple[tuple[str, int], ...]

    def stat(self, name: str) -> int:
        return dict(self.stats)[name]


def _schema() -> ModuleType:
    """Load xplane_pb2 from its file: importing it by name would import all of TensorFlow."""
    name = "tests_xplane_pb2"
    if name not in sys.modules:
        tensorflow = importlib.util.find_spec("tensorflow")
        assert tensorflow is not None
        assert tensorflow.submodule_search_locations is not None
        folder = Path(tensorflow.submodule_search_locations[0])
        path = folder / "tsl" / "profiler" / "protobuf" / "xplane_pb2.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def marks(trace: Path) -> list[Mark]:
    """Return the markers of a trace by time; the last one should be the end of the window."""
    space = _schema().XSpace.FromString(trace.read_bytes())
    found = []
    for plane in space.planes:
        stats = {key: value.name for key, value in plane.stat_metadata.items()}
        names = {key: value.name for key, value in plane.event_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                if names[event.metadata_id] in ("train", "test", "tfdoctor_end"):
                    values = tuple(
                        sorted((stats[s.metadata_id], s.int64_value or s.uint64_value) for s in event.stats)
                    )
                    if event.duration_ps and "_r" not in dict(values) and values:
                        continue  # a tf.function of the user's that is called train
                    start = line.timestamp_ns * 1000 + event.offset_ps
                    found.append(Mark(start, names[event.metadata_id], event.duration_ps, values))
    return sorted(found)


def iterator_names(trace: Path) -> set[str]:
    """Return what tf.data called the datasets of the pipelines that ran."""
    space = _schema().XSpace.FromString(trace.read_bytes())
    found = set()
    for plane in space.planes:
        stats = {key: value.name for key, value in plane.stat_metadata.items()}
        names = {key: value.name for key, value in plane.event_metadata.items()}
        for event in (event for line in plane.lines for event in line.events):
            if names[event.metadata_id].startswith("Iterator::"):
                for stat in event.stats:
                    if stats[stat.metadata_id] == "name":
                        found.add(stat.str_value or stats.get(stat.ref_value, ""))
    return found

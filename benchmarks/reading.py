"""How long a report of a large trace takes, beside xprof's overview: ``python -m benchmarks.reading [TRACE ...]``.

Without traces, the sample of a CPU run is repeated: in time, a few times and up to EVENTS events, and beside itself
in further threads. A loop inside a tf.function is recorded here: 25,000 steps of some tenths of a
millisecond. Each program runs in a process of its own, by turns; time is that of the wall, memory the
most that was resident. What counts is the ratio, and how the time grows with the trace. Of a gigabyte, only the
report is made.
"""

import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_traces" / "cpu-input-bound"

EVENTS = 4_000_000
"""As in the trace of 108 MB that the targets are stated for."""

SAMPLE_EVENTS = 9354
"""Of the sample."""

STEPS = 25_000
"""Of the loop inside a tf.function: on the machine of the published figures they make 70 MB."""

LOOP = """
import sys
import tensorflow as tf

weights = tf.Variable(tf.random.normal([16, 16]))
batches = tf.data.Dataset.from_tensor_slices(tf.random.normal([256, 16])).repeat().batch(8).prefetch(2)

@tf.function
def train(data):
    for batch in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ weights) @ weights - batch))
        weights.assign_sub(0.001 * tape.gradient(loss, weights))

data = batches.take(int(sys.argv[2]))
train(data)  # traces it
tf.profiler.experimental.start(sys.argv[1])
train(data)
tf.profiler.experimental.stop()
"""
"""Steps inside one tf.function, recorded by TensorFlow's own profiler."""

TURNS = 3

THREADS = 9
"""Of the trace of a gigabyte: so many times those of the largest other one."""

OVERVIEW = """
import sys
from xprof.convert import _pywrap_profiler_plugin as xprof
data, answered = xprof.xspace_to_tools_data([sys.argv[1]], "overview_page", {})
sys.exit(0 if answered else data.decode(errors="replace"))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """The time of a process in seconds, and its largest resident memory in bytes."""

    seconds: float
    nbytes: float


def cost(*command: str) -> Cost:
    """Run a command to its end and return its cost, children included.

    Raises:
        RuntimeError: it failed.
    """
    began = time.monotonic()
    child = os.fork()
    if not child:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        os.execvp(command[0], command)  # noqa: S606 - our own commands
    _, status, usage = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)} failed with status {status}")
    return Cost(time.monotonic() - began, usage.ru_maxrss * 1024.0)


def in_time(space: Any, times: int) -> None:
    """Repeat a trace in time: each line goes on with its own events, moved by the length of the trace."""
    length = 1 + max(
        (line.timestamp_ns * 1000 + event.offset_ps + event.duration_ps)
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    )
    start = min(line.timestamp_ns * 1000 for plane in space.planes for line in plane.lines)
    for plane in space.planes:
        for line in plane.lines:
            events = list(line.events)
            for copy in range(1, times):
                first = len(line.events)
                line.events.extend(events)
                for event in line.events[first:]:
                    event.offset_ps += copy * (length - start)


def in_threads(space: Any, times: int) -> None:
    """Repeat the host's threads, but for that of Python, under other names."""
    host = next(plane for plane in space.planes if plane.name == "/host:CPU")
    threads = [(line.id, line.name, line.SerializeToString()) for line in host.lines if line.name != "python"]
    for copy in range(1, times):
        for number, name, content in threads:
            line = host.lines.add()
            line.ParseFromString(content)
            line.id = line.display_id = number + copy
            line.name = f"{name}-{copy}"


def without_events(message: str) -> Any:
    """Return the class of a message in which lines have bytes for events: upb would make objects of all."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    from tfdoctor.trace.wire import xplane_pb2

    file = FileDescriptorProto()
    xplane_pb2().DESCRIPTOR.CopyToProto(file)
    line = next(message for message in file.message_type if message.name == "XLine")
    events = next(field for field in line.field if field.name == "events")
    events.type = events.TYPE_BYTES
    events.ClearField("type_name")
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{message}"))


def huge(folder: Path, source: Path) -> Path:
    """Write a recording of a gigabyte: that of a source, with each thread repeated; return its folder."""
    trace = next(source.rglob("*.xplane.pb"))
    space = without_events("XSpace").FromString(trace.read_bytes())
    in_threads(space, THREADS)
    out = folder / "a-gigabyte"
    shutil.copytree(SAMPLE, out)
    next(out.rglob("*.xplane.pb")).write_bytes(space.SerializeToString())
    return out


def row_alone(trace: Path, folder: Path) -> str:
    """Measure the report alone: xprof would need twenty times the trace's size in memory."""
    size = next(trace.rglob("*.xplane.pb")).stat().st_size / 1e6
    words = ("-m", "tfdoctor", "report", str(trace), "--out", str(folder / "report"))
    ours = cost(sys.executable, *words)
    return f"| {trace.name} | {size:.1f} MB | {ours.seconds:.1f} s | | | {ours.nbytes / 1e9:.2f} GB | | |"


def made(folder: Path, name: str, repeat: Callable[[Any, int], None], times: int) -> Path:
    """Write a recording whose trace is the sample's, repeated; return its folder."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    source = next(SAMPLE.glob("plugins/profile/*/*.xplane.pb"))
    space = xplane_pb2.XSpace.FromString(source.read_bytes())
    repeat(space, times)
    out = folder / name
    shutil.copytree(SAMPLE, out)
    (out / source.relative_to(SAMPLE)).write_bytes(space.SerializeToString())
    return out


def samples(folder: Path) -> list[Path]:
    """Write the traces that are measured without others."""
    most = EVENTS // SAMPLE_EVENTS
    return [
        made(folder, "repeated-in-time-small", in_time, most // 20),
        made(folder, "repeated-in-time-medium", in_time, most // 5),
        made(folder, "repeated-in-time", in_time, most),
        made(folder, "in-many-threads", in_threads, most),
        graph_loop(folder),
    ]


def graph_loop(folder: Path) -> Path:
    """Record a loop inside a tf.function; return the log directory."""
    out, script = folder / "loop-in-a-tf.function", folder / "loop.py"
    script.write_text(LOOP)  # AutoGraph reads the file: without one it would unroll the loop
    cost(sys.executable, str(script), str(out), str(STEPS))
    return out


def row(trace: Path, folder: Path) -> str:
    """Measure both programs on a trace; return its row of the table."""
    path = next(trace.rglob("*.xplane.pb")) if trace.is_dir() else trace
    ours, theirs = [], []
    for turn in range(TURNS):
        out = folder / f"{trace.name}-{turn}"
        words = ("-m", "tfdoctor", "report", str(trace), "--out", str(out))
        ours.append(cost(sys.executable, *words))
        alone = folder / f"{trace.name}-xprof-{turn}" / path.name  # xprof leaves a cache beside it
        alone.parent.mkdir()
        shutil.copy(path, alone)
        theirs.append(cost(sys.executable, "-c", OVERVIEW, str(alone)))
    seconds = [median(one.seconds for one in side) for side in (ours, theirs)]
    memory = [median(one.nbytes for one in side) / 1e9 for side in (ours, theirs)]
    size = path.stat().st_size / 1e6
    return (
        f"| {trace.name} | {size:.1f} MB | {seconds[0]:.1f} s | {seconds[1]:.1f} s | {seconds[0] / seconds[1]:.2f} "
        f"| {memory[0]:.2f} GB | {memory[1]:.2f} GB | {memory[0] / memory[1]:.2f} |"
    )


def main() -> None:
    """Print the table."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("| trace | size | report | xprof | ratio | memory of the report | of xprof | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        traces = [Path(word) for word in sys.argv[1:]] or samples(folder)
        for trace in traces:
            print(row(trace, folder), flush=True)
        if not sys.argv[1:]:
            print(row_alone(huge(folder, folder / "repeated-in-time"), folder))


if __name__ == "__main__":
    main()

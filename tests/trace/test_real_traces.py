"""Real traces are read, and hold what was measured in them by hand (the README of the traces)."""

from tests.kit import *
from tests.xspaces import TRACES
from tfdoctor.trace import xplane
from tfdoctor.trace.intervals import Intervals
from tfdoctor.trace.model import Line, Plane, Trace
from tfdoctor.trace.names import COPY, STREAM_PREFIX, TPU_OPS, WAIT

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not at hand")


@dataclass(frozen=True)
class Figures:
    """Milliseconds on the busiest device; None where there is nothing to measure."""

    kernels: float | None = None
    copies: float | None = None
    step: float | None = None
    wait: float | None = None  # the longest line's


KNOWN = {
    "v100x8-bert-partial-step": Figures(14.9, 0.24, 21.3, 7.15),
    "tpu-v6e-jax-host-offload": Figures(78_785),
    "mi300x-jax-conv": Figures(3.52),
    "mi300x-jax-attention": Figures(3.76, 0.083),
    "mi355x-jax-te-attention": Figures(12.1),
    "tf24-v100-input-wait": Figures(41.6, 22.6, 62_185, 62_116),
    "tf24-v100-resnet50-fp32": Figures(363.7, 28.8, 406.0, 0.12),
    "tf23-p4-alexnet-fp32": Figures(160.3, 24.9, 201.0, 0.13),
    "tf24-rtx2060-launch-bound": Figures(1.3, 0.04, 10.6, 0.48),
    "tf24-t4-lenet": Figures(5.7, 0.09, 9.0, 0.09),
    "tf2-macos-cpu-lenet": Figures(wait=0.07),
    "tf24-laptop-gpu-no-cupti": Figures(wait=0.07),
}


def read(name: str) -> Trace:
    return xplane.read(next((TRACES / name).rglob("*.xplane.pb")))


def covered(line: Line, kinds: set[int]) -> Intervals:
    return Intervals.union(
        (start, start + length)
        for kind, start, length in zip(line.kind, line.start_ps, line.duration_ps, strict=True)
        if int(kind) in kinds
    )


def device(plane: Plane) -> Figures:
    copies = {at for at, kind in enumerate(plane.types) if COPY.match(kind.name)}
    others = set(range(len(plane.types))) - copies
    kernel, copy, steps = Intervals(), Intervals(), Intervals()
    for line in plane.lines:
        if line.name.startswith(STREAM_PREFIX) or line.name == TPU_OPS:
            kernel |= covered(line, others)
            copy |= covered(line, copies)
        elif line.name == "Steps":
            steps |= covered(line, others)
    return Figures(kernel.total / 1e9, copy.total / 1e9, steps.total / 1e9)


def busiest(trace: Trace) -> Figures:
    planes = (*trace.devices("GPU"), *trace.devices("TPU"))
    return max(map(device, planes), key=lambda one: one.kernels or 0, default=Figures())


def longest_wait(trace: Trace) -> float:
    assert trace.host is not None
    kinds = {at for at, kind in enumerate(trace.host.types) if WAIT.fullmatch(kind.name)}
    return max(covered(line, kinds).total for line in trace.host.lines) / 1e9


@each(*KNOWN)
def test_the_figures_are_those_measured_by_hand(name: str) -> None:
    trace, known = read(name), KNOWN[name]
    figures = busiest(trace)
    for part in ("kernels", "copies", "step"):
        if (expected := getattr(known, part)) is not None:
            assert getattr(figures, part) == pytest.approx(expected, rel=0.05, abs=0.005), part
    if known.wait is not None:
        assert longest_wait(trace) == pytest.approx(known.wait, rel=0.05, abs=0.005)


def test_every_trace_is_known_or_corrupt() -> None:
    here = {path.parent.parent.parent.parent.name for path in TRACES.rglob("*.xplane.pb")}
    assert here == {*KNOWN, "tpu-v6e-jax-corrupt"}


def test_the_corrupt_one_is_refused() -> None:
    with pytest.raises(InputError, match="damaged"):
        read("tpu-v6e-jax-corrupt")


def test_the_missing_cupti_is_told_and_names_are_clean() -> None:
    trace = read("tf24-laptop-gpu-no-cupti")
    assert "libcupti" in " ".join(trace.errors)
    texts = [kind.name for plane in trace.planes for kind in plane.types]
    texts += [
        str(value)
        for plane in trace.planes
        for line in plane.lines
        for event in line.events()
        for value in event.stats.values()
    ]
    assert all(text.isprintable() for text in texts)


def test_old_traces_keep_their_derived_lines() -> None:
    (gpu,) = read("tf24-v100-resnet50-fp32").devices("GPU")
    assert {"Steps", "TensorFlow Ops"} <= {line.name for line in gpu.lines}

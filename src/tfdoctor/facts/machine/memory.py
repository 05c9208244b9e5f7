"""Memory: of accelerators, of the host, and what TensorFlow, XLA and numpy say where it does not suffice."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.machine.samples import counter_rate
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import WIDTHS
from tfdoctor.facts.timeline.host_events import is_named

EVENTS = ("MemoryAllocation", "MemoryDeallocation")
# Allocators of a device's memory; "gpu_host_bfc" and "cpu" are the host's. (Traces of TensorFlow 2.4 on Windows
# have lost the first letter.)
ON_DEVICE = re.compile(r"G?PU_\d+_bfc|gpu_async_\d+|TPU_?\d*.*")
PARTS = ("bytes_available", "bytes_allocated", "bytes_reserved")  # Statistics that sum to the allocator's limit

# Classes of exceptions that mean that memory did not suffice.
ERRORS = frozenset({"MemoryError", "_ArrayMemoryError", "ResourceExhaustedError"})
STATUS = re.compile(r"\bRESOURCE_EXHAUSTED\b")  # The status code of such an error, where its class is a general one
OF_STATUS = frozenset({"InternalError", "XlaRuntimeError", "JaxRuntimeError", "UnknownError"})
# TensorFlow, core/framework/op_kernel.cc.
TENSOR = re.compile(
    r"OOM when allocating tensor with shape\[(?P<shape>[\d,]*)\] and type (?P<dtype>\w+) "
    r"on \S+ by allocator (?P<allocator>\w+)"
)
# numpy, _core/_exceptions.py.
ARRAY = re.compile(
    r"Unable to allocate (?P<amount>[\d.]+) (?P<unit>\w+) for an array "
    r"with shape \((?P<shape>[\d, ]*)\) and data type (?P<dtype>\w+)"
)
# XLA, stream_executor and its allocators.
BYTES = re.compile(r"[Oo]ut of memory (?:while )?trying to allocate (?P<amount>\d+) ?bytes")
DTYPES = {"float": "float32", "double": "float64", "half": "float16"}  # TensorFlow's C++ names, as numpy has them
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}


class Allocator(Record):
    """One device's memory, in bytes."""

    name: str  # "GPU_0_bfc"
    limit: float  # what it may hand out
    used: float  # the most in use during the trace
    peak: float = 0.0  # the most since the program began, cuDNN's search for algorithms included

    @property
    def share(self) -> float:
        """The highest share of the limit in use, 0 to 1."""
        return self.used / self.limit


class DeviceMemory(Record):
    """The allocators in the trace, the fullest first.

    nvidia-smi does not show the need: TensorFlow reserves nearly all memory when it starts.
    """

    allocators: tuple[Allocator, ...]

    @classmethod
    def measure(cls, trace: Trace, device: Device) -> Self:
        """Read the allocators' own statistics."""
        if device.kind == DeviceKind.CPU:
            raise Unavailable("the run used no accelerator")
        by_name: dict[str, list[tuple[float, float, float]]] = defaultdict(list)  # limit, use and peak
        for line in trace.host_lines:
            for at in np.flatnonzero(is_named(line, EVENTS.__contains__)).tolist():
                stats = line.stats.of(at)
                name = str(stats.get("allocator_name") or "")
                if ON_DEVICE.fullmatch(name) and all(part in stats for part in PARTS):
                    limit = sum(float(stats[part]) for part in PARTS)
                    used, peak = limit - float(stats["bytes_available"]), float(stats.get("peak_bytes_in_use", 0))
                    by_name[name].append((limit, used, peak))
        if not by_name:
            raise Unavailable(
                "the trace does not show the memory use of the device: it holds no allocation in the traced "
                "steps, or the profiler did not record them"
            )
        most = ((name, *map(max, zip(*rows, strict=True))) for name, rows in by_name.items())
        allocators = [Allocator(name, max(1.0, limit), used, peak) for name, limit, used, peak in most]
        return cls(tuple(sorted(allocators, key=lambda one: -one.share)))

    @property
    def fullest(self) -> Allocator:
        """The one nearest to its limit."""
        return self.allocators[0]


class HostMemory(Record):
    """Bytes, and shares from 0 to 1; over all samples of the run."""

    total: float
    used: float  # the most in use by all programs
    by_run: float | None = None  # the run's highest RSS
    stalled: float | None = None  # share of the time in which some task waited for memory

    @classmethod
    def measure(cls, recording: Recording, framework: Framework) -> Self:
        """Read the samples."""
        rows = [(row.unix_ns, row.host) for row in recording.samples if row.host]
        hosts = [host for _, host in rows if host.memory_total_bytes]
        if not hosts:
            raise Unavailable(f"the machine's memory was not sampled{framework.with_tfdoctor}")
        run_bytes = [float(host.run_rss_bytes) for host in hosts if host.run_rss_bytes]
        # The kernel counts waits for memory (PSI, "some").
        stalled = counter_rate((at, host.psi_memory_us) for at, host in rows)
        used = max(float(host.memory_used_bytes or 0) for host in hosts)
        return cls(float(hosts[-1].memory_total_bytes or 0), used, max(run_bytes, default=None), stalled)

    @property
    def share(self) -> float:
        """The highest share of the memory in use, 0 to 1."""
        return self.used / self.total


class MemoryWanted(Record):
    """The tensor or the bytes that could not be allocated; empty where the message does not say."""

    shape: tuple[int, ...] = ()
    dtype: str = ""
    allocator: str = ""
    nbytes: float | None = None

    @classmethod
    def of(cls, message: str) -> Self:
        """Read the message of an exception."""
        if found := TENSOR.search(message) or ARRAY.search(message):
            told = found.groupdict()
            dtype = DTYPES.get(told["dtype"], told["dtype"])
            shape = tuple(int(size) for size in told["shape"].replace(" ", "").split(",") if size)
            nbytes = float(prod(shape) * WIDTHS[dtype]) if WIDTHS.get(dtype) else None
            if "amount" in told:  # numpy's types may have no width
                nbytes = nbytes or float(told["amount"]) * UNITS.get(told["unit"], 0) or None
            return cls(shape, dtype, told.get("allocator", ""), nbytes)
        found = BYTES.search(message)
        return cls(nbytes=float(found["amount"])) if found else cls()


def is_memory_error(error: str, message: str) -> bool:
    """Return whether an exception, by its class or its status code, means that memory did not suffice."""
    return error in ERRORS or (error in OF_STATUS and STATUS.search(message) is not None)

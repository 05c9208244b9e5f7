"""What is compiled when a run starts: CUDA's kernels from PTX, and XLA's programs."""

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording
from tfdoctor.recording.program import KernelCache

# A compute capability for which a build has kernels: "sm_80"; sm_90a runs on 9.0 alone, and counts as such.
KERNELS = re.compile(r"sm_(\d+)(\d)[af]?")
PTX = re.compile(r"compute_(\d+)(\d)")  # One for which it has PTX, which newer GPUs compile
# Bytes that CUDA's cache holds unless CUDA_CACHE_MAXSIZE says otherwise (CUDA C++ Programming Guide).
USUAL_LIMIT = 1 << 30
FULL = 0.9  # Share of the cache's limit from which on new kernels push out old ones soon
# The flag of TensorFlow that keeps XLA's programs in a folder (tensorflow/compiler/jit/flags.cc).
PERSISTENT = "--tf_xla_persistent_cache_directory="


class PtxKernels(Record):
    """Kernels that CUDA compiles from PTX, for want of ones for the GPU, and the cache where they are kept.

    ``ms`` is the time until the last was compiled, as far as it is in tracing and building.
    """

    capability: str  # of the GPU: "12.0"
    cache: KernelCache = KernelCache()
    ms: float = 0.0

    @property
    def limit(self) -> int:
        """The bytes that the cache holds."""
        return int(self.cache.limit) if self.cache.limit and self.cache.limit.isdecimal() else USUAL_LIMIT


class StartCompiling(Record):
    """Times in ms of the run.

    ``xla_ms`` is the time within calls that trace a function in which TensorFlow's executor ran, where the training
    function is compiled by XLA: compiling and the first execution. ``kept`` says that XLA's programs are kept.
    """

    ptx: PtxKernels | None = None
    xla: bool = False
    xla_ms: float = 0.0
    kept: bool = False

    @classmethod
    def measure(cls, recording: Recording, phases: RunPhases) -> Self:
        """Compare the build with the GPU, and add up what the traced calls executed."""
        run = recording.program.run if recording.program else None
        if run is None:
            raise Unavailable("the settings of the run were not recorded")
        xla = run.jit_compile is True
        flags = recording.manifest.environment.get("TF_XLA_FLAGS", "") if recording.manifest else ""
        gpus, ptx = run.gpus, None  # for the first GPU that the build has no kernels for
        lacking = next((one for one in gpus.capabilities if needs_ptx(one, gpus.targets)), None) if gpus else None
        if gpus and gpus.cache and lacking is not None:
            took_ms = min(gpus.cache.seconds * 1000.0, phases.of(Phase.TRACING, Phase.BUILDING))
            ptx = PtxKernels(lacking, gpus.cache, took_ms)
        xla_ms = sum(line.executes_ms for line in phases.at(Phase.TRACING)) if xla else 0.0
        return cls(ptx, xla, xla_ms, PERSISTENT in flags)


def needs_ptx(capability: str, targets: tuple[str, ...]) -> bool:
    """Return whether a build has PTX for a GPU, and no kernels.

    Kernels run on GPUs of the same major and an equal or higher minor number, PTX on all that are not older (CUDA
    C++ Programming Guide, binary and PTX compatibility).
    """
    major, _, minor = capability.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        return False
    gpu = int(major), int(minor)
    kernels, ptx = (
        [(int(m[1]), int(m[2])) for m in map(pattern.fullmatch, targets) if m] for pattern in (KERNELS, PTX)
    )
    fits = any(one[0] == gpu[0] and one[1] <= gpu[1] for one in kernels)
    return not fits and any(one <= gpu for one in ptx)

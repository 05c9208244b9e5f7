"""The setting that keeps the operations of a CPU run from the cores of the machine."""

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

VARIABLE = "TF_NUM_INTRAOP_THREADS"


class LimitOrigin(StrEnum):
    """What sets the limit; TensorFlow asks the program first, then the variable, then the affinity."""

    PROGRAM = "tf.config.threading.set_intra_op_parallelism_threads"
    VARIABLE = f"the environment variable {VARIABLE}"
    AFFINITY = "the process's CPU affinity"
    QUOTA = "the control group's CPU quota"


class ThreadSetting(Record):
    """The smallest limit on the threads of one operation, in threads or cores; ``origin`` is None without one.

    ``offered`` are the cores that the run could use without it.
    """

    limit: float
    offered: float
    origin: LimitOrigin | None = None
    at: Location | None = None  # the line that sets it

    @classmethod
    def measure(cls, recording: Recording, program: Program, framework: Framework) -> "ThreadSetting":
        """Compare all limits with what each of them is set on."""
        manifest, settings = recording.manifest, program.settings
        if manifest is None or not manifest.host.cores_logical:
            raise Unavailable(f"the number of cores was not recorded{framework.with_tfdoctor}")
        machine = float(manifest.host.cores_logical)
        quotas = [float(row.host.quota_cores or 0.0) for row in recording.samples if row.host]
        known = settings.affinity or (0.0 if any(quotas) else manifest.host.cores_usable)
        allowed = min(machine, known or machine)
        quota = min(allowed, *filter(None, quotas), machine)
        variable = settings.intra_op_variable or manifest.environment.get(VARIABLE, "")
        threads = cls(float(variable) if variable.strip().isdecimal() else 0.0, quota, LimitOrigin.VARIABLE)
        if settings.intra_op_threads:  # its number hides that of the variable
            at = Places.of(recording)(settings.intra_op_at)
            threads = cls(float(settings.intra_op_threads), quota, LimitOrigin.PROGRAM, at)
        of_quota = cls(quota, allowed, LimitOrigin.QUOTA)
        of_affinity = cls(allowed, machine, LimitOrigin.AFFINITY)
        below = (one for one in (threads, of_quota, of_affinity) if 0.0 < one.limit < one.offered)
        return next(below, cls(quota, quota))

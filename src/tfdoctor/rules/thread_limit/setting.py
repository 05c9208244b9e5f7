"""The setting that keeps the operations of a CPU run from the cores of the machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places, Program
from tfdoctor.recording import Recording
from tfdoctor.terms.verdict import Location

VARIABLE = "TF_NUM_INTRAOP_THREADS"


class LimitOrigin(StrEnum):
    """What sets the limit; TensorFlow asks the program first, then the variable, then the affinity."""

    PROGRAM = "tf.config.threading.set_intra_op_parallelism_threads"
    VARIABLE = f"the environment variable {VARIABLE}"
    AFFINITY = "the process's CPU affinity"
    QUOTA = "the control group's CPU quota"


@dataclass(frozen=True, slots=True)
class ThreadSetting:
    """The smallest limit on the threads of one operation, in threads or cores; ``origin`` is None without one.

    ``offered`` are the cores that the run could use without it.
    """

    limit: float
    offered: float
    origin: LimitOrigin | None = None
    at: Location | None = None  # the line that sets it

    @classmethod
    def measure(cls, recording: Recording, program: Program, framework: Framework) -> "ThreadSetting":
        """Compare all limits with what each of them is set on.

        Raises:
            Unavailable: the recording does not say how many cores the machine has.
        """
        host = recording.manifest.host if recording.manifest else None
        if host is None or not host.cores_logical:
            raise Unavailable(f"the number of cores was not recorded{framework.with_tfdoctor}")
        machine, settings = float(host.cores_logical), program.settings
        quotas = [float(row.host.quota_cores or 0.0) for row in recording.samples if row.host]
        known = settings.affinity or (0.0 if any(quotas) else host.cores_usable)
        allowed = min(machine, known or machine)
        quota = min(allowed, *filter(None, quotas), machine)
        variable = settings.intra_op_variable or _recorded(recording)
        limits = (
            cls(float(settings.intra_op_threads or 0), quota, LimitOrigin.PROGRAM),
            cls(float(_number(variable)), quota, LimitOrigin.VARIABLE),
            cls(quota, allowed, LimitOrigin.QUOTA),
            cls(allowed, machine, LimitOrigin.AFFINITY),
        )
        found = next(_below(limits), cls(quota, quota))
        if found.origin is not LimitOrigin.PROGRAM:
            return found
        return cls(found.limit, quota, LimitOrigin.PROGRAM, Places.of(recording)(settings.intra_op_at))


def _below(limits: tuple[ThreadSetting, ...]) -> Iterator[ThreadSetting]:
    """Yield the limits below what they are set on; the program's number hides that of the variable."""
    program, variable, *others = limits
    threads = program if program.limit else variable
    return (one for one in (threads, *others) if 0.0 < one.limit < one.offered)


def _recorded(recording: Recording) -> str:
    return recording.manifest.environment.get(VARIABLE, "") if recording.manifest else ""


def _number(text: str) -> int:
    return int(text) if text.strip().isdecimal() else 0

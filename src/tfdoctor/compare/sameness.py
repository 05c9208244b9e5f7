"""Whether two runs are the same program on the same machine: only then their milliseconds can be compared."""

from collections.abc import Iterator

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import Mismatch


def mismatches(before: Diagnosis, after: Diagnosis) -> tuple[Mismatch, ...]:
    """Return in which respects two runs differ; what is unknown of one of them does not count."""
    pairs = zip(_traits(before), _traits(after), strict=True)
    return tuple(Mismatch(what, one, other) for (what, one), (_, other) in pairs if one and other and one != other)


def _traits(report: Diagnosis) -> Iterator[tuple[str, str]]:
    subject, conditions = report.subject, report.conditions
    yield "host", ", ".join(sorted(subject.hosts))
    yield "device", subject.device_name or subject.device or ""
    yield "number of devices", _number(subject.devices_used)
    yield "CPU", conditions.cpu_model
    yield "usable cores", _number(conditions.cores_usable)
    yield "command", " ".join(subject.command)
    yield "batch size", _number(conditions.batch_size)
    yield ("versions", ", ".join(f"{name} {text}" for name, text in sorted(subject.framework.items())))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"

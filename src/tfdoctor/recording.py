"""A recording on disk: what was run, its traces, what it built, and the samples beside it.

Left of this module is TensorFlow; right of it are only bytes. A TensorBoard log directory, one of
its run folders and a single `*.xplane.pb` are recordings too, which merely carry less.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

from tfdoctor.errors import InputError

MANIFEST, PROGRAM, SAMPLES, GUEST = (
    "tfdoctor.json",
    "program.json.gz",
    "samples.jsonl",
    "guest.json",
)
TRACES = "*.xplane.pb"
SCHEMA = 1

Json = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Host:
    """The machine of the run."""

    name: str = ""
    cpu_model: str = ""
    cpu_flags: tuple[str, ...] = ()
    cores_logical: int = 0
    cores_usable: float = 0.0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """The traced steps."""

    warmup: int = 0
    steps: int = 0
    first_step: int = 0
    calls: int = 0
    source: str = ""
    started_unix_ns: int = 0
    stopped_unix_ns: int | None = None
    contains_warmup: bool = False
    stopped_by: str = ""


@dataclass(frozen=True, slots=True)
class StepsSeen:
    """How the steps were seen, in the whole run."""

    source: str | None = None
    seen: int = 0
    candidates: tuple[Json, ...] = ()
    discarded: tuple[int, ...] = ()
    untraced: Json | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run ended; both are None while it runs, or when tfdoctor was killed."""

    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """What became of one sampler."""

    name: str = ""
    status: str = ""
    reason: str = ""
    count: int = 0
    cost_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Missing:
    """What the recording lacks, and what to do about it."""

    what: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class GuestError:
    """A fault inside the hook; the run did not notice it."""

    where: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """The same moment on two clocks: a step of the wall clock shows in their difference."""

    unix_ns: int = 0
    monotonic_ns: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """`tfdoctor.json`."""

    schema: int = SCHEMA
    tfdoctor: str = ""
    finished: bool = False
    command: tuple[str, ...] = ()
    cwd: str = ""
    python: str = ""
    environment: Json | None = None
    versions: Json | None = None
    host: Host = Host()
    plan: Json | None = None
    window: Window | None = None
    steps: StepsSeen = StepsSeen()
    outcome: Ending = Ending()
    clock: tuple[Clock, ...] = ()
    samplers: tuple[Sampling, ...] = ()
    missing: tuple[Missing, ...] = ()
    guest_errors: tuple[GuestError, ...] = ()

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read a manifest; what is absent or of another kind keeps its default."""
        data = data if isinstance(data, dict) else {}
        window = data.get("window")
        parts = {
            "host": _read(Host, data.get("host")),
            "window": _read(Window, window) if isinstance(window, dict) else None,
            "steps": _read(StepsSeen, data.get("steps")),
            "outcome": _read(Ending, data.get("outcome")),
            "clock": _read_all(Clock, data.get("clock")),
            "samplers": _read_all(Sampling, data.get("samplers")),
            "missing": _read_all(Missing, data.get("missing")),
            "guest_errors": _read_all(GuestError, data.get("guest_errors")),
        }
        plain = {key: value for key, value in data.items() if key not in parts}
        return _read(cls, plain, parts)

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON knows it."""
        return asdict(self)


def _read(kind: type[T], data: object, parts: Json | None = None) -> T:
    """Build a dataclass from the entries of a JSON object that fit it."""
    values = dict(parts or {})
    if isinstance(data, dict):
        empty = kind()
        for field in fields(kind):  # type: ignore[arg-type]  # every T here is a dataclass
            value = data.get(field.name)
            value = tuple(value) if isinstance(value, list) else value
            if value is not None and _fits(value, getattr(empty, field.name)):
                values[field.name] = value
    return kind(**values)


def _fits(value: object, default: object) -> bool:
    """Say whether a value is of the kind of the field's default; None says nothing of the kind."""
    if isinstance(default, bool) or isinstance(value, bool):
        return default is None or isinstance(value, type(default))
    if isinstance(default, float):
        return isinstance(value, int | float)
    return default is None or isinstance(value, type(default))


def _read_all(kind: type[T], data: object) -> tuple[T, ...]:
    items = data if isinstance(data, list) else []
    return tuple(_read(kind, item) for item in items if isinstance(item, dict))


def fold(manifest: Json, guest: Json) -> dict[str, Any]:
    """Return a manifest with what the guest left in its state file."""
    folded = dict(manifest)
    for name in ("window", "steps"):
        if guest.get(name):
            folded[name] = guest[name]
    folded["versions"] = {**(manifest.get("versions") or {}), **(guest.get("versions") or {})}
    folded["missing"] = [*(manifest.get("missing") or ()), *(guest.get("missing") or ())]
    folded["guest_errors"] = [*(manifest.get("guest_errors") or ()), *(guest.get("errors") or ())]
    return folded


@dataclass(frozen=True)
class Recording:
    """What there is to read; `notes` says what was passed over or damaged."""

    root: Path | None
    manifest: Manifest | None
    traces: tuple[Path, ...]
    samples: tuple[Json, ...]
    notes: tuple[str, ...]

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a recording, a log directory, a run folder or a trace file; never write there.

        Raises:
            InputError: nothing there can be read as a recording.
        """
        path = Path(path)
        notes: list[str] = []
        try:
            root, traces = _find(path, notes)
            for trace in traces:
                _sniff(trace)
            return cls(root, _manifest(root, notes), traces, _samples(root, notes), tuple(notes))
        except PermissionError as error:
            raise InputError(
                f"{error.filename or path} cannot be read: check its permissions."
            ) from error

    @cached_property
    def program(self) -> Json | None:
        """Return what the run built, or None; a damaged file counts as none."""
        if self.root is None or not (self.root / PROGRAM).is_file():
            return None
        try:
            program = json.loads(gzip.decompress((self.root / PROGRAM).read_bytes()))
        except (OSError, EOFError, zlib.error, ValueError):
            return None
        return program if isinstance(program, dict) else None


def _find(path: Path, notes: list[str]) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the recording's folder and its traces."""
    if not path.exists():
        raise InputError(f"There is nothing at {path}: check the path.")
    if path.is_file():
        return None, (path,)
    traces = tuple(sorted(path.glob(TRACES))) or _newest_run(path, notes)
    own = (path / MANIFEST).is_file()
    if not traces and not own:
        raise InputError(
            f"No trace under {path}: expected plugins/profile/<run>/<host>.xplane.pb; "
            "record one with `tfdoctor profile`."
        )
    return (path if own else None), traces


def _newest_run(path: Path, notes: list[str]) -> tuple[Path, ...]:
    runs = {trace.parent for trace in path.glob(f"**/plugins/profile/*/{TRACES}")}
    if path.name == "profile" or path.parent.name == "plugins":
        runs |= {trace.parent for trace in path.glob(f"*/{TRACES}")}
    ordered = sorted(runs, key=lambda run: (_age(run), str(run)))
    if not ordered:
        return ()
    if len(ordered) > 1:
        notes.append(f"{len(ordered)} runs found: the newest, {ordered[-1].name}, is shown")
    return tuple(sorted(ordered[-1].glob(TRACES)))


def _age(run: Path) -> str:
    """Return what orders runs by time: their names are dates, and survive copying."""
    return run.name


def _sniff(trace: Path) -> None:
    """Refuse, by its first bytes, what is certainly no XSpace."""
    size = trace.stat().st_size
    with trace.open("rb") as file:
        head = file.read(64)
    fault = _fault(head, size)
    if fault:
        raise InputError(f"{trace} is {fault}: expected a *.xplane.pb that a profiler wrote.")


def _fault(head: bytes, size: int) -> str | None:
    """Return what a file is instead of an XSpace, or None."""
    if size == 0:
        return "empty"
    if head.startswith(b"\x1f\x8b"):
        return "compressed (gunzip it first)"
    text = head.lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "a web page"
    if text.startswith((b"{", b"[")) and head[:1] != b"\n":
        return "JSON"
    # An XSpace is a list of planes (field 1), errors (2), warnings (3) and host names (4).
    if head[0] not in (0x0A, 0x12, 0x1A, 0x22):
        return "no XSpace"
    return "text" if _is_text(head) else None


def _is_text(head: bytes) -> bool:
    """Say whether a file reads as text; a protobuf has lengths and ids that do not."""
    return head.isascii() and all(char.isprintable() or char in "\t\r\n" for char in head.decode())


def _manifest(root: Path | None, notes: list[str]) -> Manifest | None:
    if root is None:
        return None
    data = _json(root / MANIFEST, notes)
    if not isinstance(data, dict):
        return None
    guest = _json(root / GUEST, notes) if (root / GUEST).is_file() else None
    if isinstance(guest, dict):  # tfdoctor was killed: the guest's own word is all there is
        data = fold(data, guest)
    manifest = Manifest.from_json(data)
    if manifest.schema > SCHEMA:
        notes.append(f"{MANIFEST} is of a later tfdoctor (schema {manifest.schema}): update it")
    if not manifest.finished:
        notes.append("The recording is unfinished: tfdoctor was killed, or is still running")
    return manifest


def _json(path: Path, notes: list[str]) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        notes.append(f"{path.name} is damaged and was left out")
        return None


def _samples(root: Path | None, notes: list[str]) -> tuple[Json, ...]:
    if root is None or not (root / SAMPLES).is_file():
        return ()
    lines = (root / SAMPLES).read_text(encoding="utf-8", errors="replace").splitlines()
    samples = tuple(_lines(lines))
    if len(samples) < len(lines):
        notes.append(f"{len(lines) - len(samples)} damaged line(s) of {SAMPLES} were left out")
    return samples


def _lines(lines: list[str]) -> Iterator[Json]:
    for line in lines:
        try:
            sample = json.loads(line)
        except ValueError:
            continue
        if isinstance(sample, dict) and isinstance(sample.get("unix_ns"), int):
            yield sample

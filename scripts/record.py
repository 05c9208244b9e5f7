"""Records the samples of real runs from the examples, on the CPU, and scrubs them.

Run it on an idle machine (`make samples`). Data that identify the machine or its owner are replaced: host
names, paths, the environment. Times, hardware and versions stay.
"""

import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from tensorflow.tsl.profiler.protobuf import profiler_options_pb2

from tfdoctor.facts.machine.samples import BUSY_CORES, Samples
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import Recording
from tfdoctor.trace.wire import Message, parse

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_traces"
README = SAMPLES / "README.md"
MARKS = "<!-- recorded -->\n", "<!-- /recorded -->"
STEPS = 8
ATTEMPTS = 8
PATIENCE_S = 300
HOST = "host"
FOLDER = "/home/user/train"

SHOWS = {
    "cpu-input-bound": ("input_bound.py", "Steps that wait for Python to prepare their images."),
    "cpu-input-bound-fixed": (
        "input_bound_fixed.py",
        "The same training with its images prepared by TensorFlow, ahead of the step.",
    ),
    "cpu-float32-convnet": (
        "float32_convnet.py",
        "A network in float32, with 40 channels and unfused batch normalization.",
    ),
    "cpu-float32-convnet-fixed": (
        "float32_convnet_fixed.py",
        "The same network in bfloat16, with 32 channels and fused batch normalization.",
    ),
    "cpu-outside-steps": (
        "outside_steps.py",
        "A run whose time is not in its steps, but in preparing, compiling and predicting.",
    ),
    "cpu-outside-steps-fixed": (
        "outside_steps_fixed.py",
        "The same run, prepared, compiled and predicted at once.",
    ),
}
"""Each sample's script among the examples, and its description."""


def main() -> None:
    """Record all samples, or the named ones, and describe all in their README."""
    for name in sys.argv[1:] or SHOWS:
        _record(name, SHOWS[name][0])
    _describe("\n".join(_section(name, *shows) for name, shows in SHOWS.items()))


def _record(name: str, script: str) -> None:
    """Profile a script in a temporary folder; replace the sample by the scrubbed recording."""
    target = SAMPLES / name
    with tempfile.TemporaryDirectory() as folder:
        for example in (ROOT / "examples").glob("*.py"):  # one may import another
            shutil.copy(example, folder)
        recording = _undisturbed(Path(folder), script)
        shutil.rmtree(target, ignore_errors=True)
        _scrub(recording, target, _replacements(folder))
    print(f"recorded {target.relative_to(ROOT)}")


def _undisturbed(folder: Path, script: str) -> Path:
    """Return a recording during which other programs used few cores."""
    for attempt in range(ATTEMPTS):
        _wait_for_quiet()
        recording = folder / f"attempt-{attempt}"
        _profile(folder, script, recording)
        if (Samples.measure(Recording.open(recording), Framework()).other_cores or 0.0) <= BUSY_CORES:
            return recording
        print(f"{script}: other programs were at work, trying again")
    raise SystemExit(f"{script} was never alone on this machine: try again when it is quiet")


def _wait_for_quiet() -> None:
    """Wait, up to some minutes, until other programs use few cores."""
    for _ in range(PATIENCE_S // 2):
        if psutil.cpu_percent(2) / 100 * (psutil.cpu_count() or 1) <= BUSY_CORES:
            return


def _profile(folder: Path, script: str, out: Path) -> None:
    """Run tfdoctor as a user would, with only PATH and HOME in the environment."""
    tfdoctor = [sys.executable, "-m", "tfdoctor", "profile", "--no-report"]
    plan = ["--steps", str(STEPS), "--out", out.name, script]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    subprocess.run([*tfdoctor, *plan], cwd=folder, env=environment, check=True)  # noqa: S603 - our own


def _replacements(folder: str) -> dict[str, str]:
    """Return texts that identify the machine, with their replacements, longest first."""
    replacements = {
        folder: FOLDER,
        str(Path(folder).resolve()): FOLDER,
        sysconfig.get_path("purelib"): "/home/user/.venv/lib/site-packages",
        sys.prefix: "/home/user/.venv",
        sys.base_prefix: "/usr",
        str(ROOT): "/home/user/tfdoctor",
        str(Path.home()): "/home/user",
    }
    return dict(sorted(replacements.items(), key=lambda item: -len(item[0])))


def _scrub(source: Path, target: Path, replacements: Mapping[str, str]) -> None:
    """Copy a recording without texts that identify the machine."""
    target.mkdir(parents=True)
    manifest = _replaced(json.loads((source / "tfdoctor.json").read_bytes()), replacements)
    manifest["host"]["name"] = HOST
    manifest["command"][0] = manifest["python"] = "python"
    (target / "tfdoctor.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    program = _replaced(json.loads(gzip.decompress((source / "program.json.gz").read_bytes())), replacements)
    packed = gzip.compress(json.dumps(program, separators=(",", ":")).encode(), mtime=0)
    (target / "program.json.gz").write_bytes(packed)
    shutil.copy(source / "samples.jsonl", target)
    run = [json.loads(line) for line in (source / "run.jsonl").read_text().splitlines()]
    lines = [json.dumps(_replaced(line, replacements), separators=(",", ":")) for line in run]
    (target / "run.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for trace in source.glob("plugins/profile/*/*.xplane.pb"):
        folder = target / trace.parent.relative_to(source)
        folder.mkdir(parents=True)
        space = parse(trace)
        _scrub_trace(space, replacements)
        (folder / f"{HOST}.xplane.pb").write_bytes(space.SerializeToString(deterministic=True))


def _scrub_trace(space: Message, replacements: Mapping[str, str]) -> None:
    """Replace the texts of a trace that identify the machine."""
    space.hostnames[:] = [HOST for _ in space.hostnames]
    for plane in space.planes:
        for metadata in [*plane.event_metadata.values(), *plane.stat_metadata.values()]:
            metadata.name = _text(metadata.name, replacements)
        for stat in _stats(plane):
            if stat.WhichOneof("value") == "str_value":
                stat.str_value = _text(stat.str_value, replacements)
            elif stat.WhichOneof("value") == "bytes_value":
                stat.bytes_value = _options(stat.bytes_value)


def _stats(plane: Message) -> Iterator[Message]:
    yield from plane.stats
    for metadata in plane.event_metadata.values():
        yield from metadata.stats
    for line in plane.lines:
        for event in line.events:
            yield from event.stats


def _options(serialized: bytes) -> bytes:
    """Return the profiler's options without the folder that it wrote to."""
    options = profiler_options_pb2.ProfileOptions.FromString(serialized)
    options.repository_path = FOLDER
    return bytes(options.SerializeToString())


def _replaced(value: Any, replacements: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    """Return JSON with every text replaced, keys included."""
    if isinstance(value, dict):
        return {_text(k, replacements): _replaced(v, replacements) for k, v in value.items()}
    if isinstance(value, list):
        return [_replaced(item, replacements) for item in value]
    return _text(value, replacements) if isinstance(value, str) else value


def _text(text: str, replacements: Mapping[str, str]) -> str:
    for private, shown in replacements.items():
        text = text.replace(private, shown)
    return HOST if text == platform.node() else text


def _section(name: str, script: str, shows: str) -> str:
    """Return the README's section on one sample."""
    manifest = Recording.open(SAMPLES / name).manifest
    assert manifest is not None  # noqa: S101 - we have written it
    versions = manifest.versions or {}
    date = datetime.fromtimestamp(manifest.clock[0].unix_ns / 1e9, tz=UTC).date()
    machine = f"{manifest.host.cpu_model}, {manifest.host.cores_usable:g} cores"
    flags = ", ".join(manifest.host.cpu_flags)
    size = sum(path.stat().st_size for path in (SAMPLES / name).rglob("*") if path.is_file())
    return f"""\
## {name}

{shows} A real run, recorded by tfdoctor.

| | |
|---|---|
| script | [examples/{script}](../examples/{script}) |
| command | `tfdoctor profile --no-report --steps {STEPS} {script}` |
| recorded | {date}, by `scripts/record.py` |
| versions | TensorFlow {versions["tensorflow"]}, Keras {versions["keras"]}, Python {versions["python"]} |
| machine | {machine} ({flags}); no accelerator |
| replaced afterwards | the host's name, paths of the machine |
| size | {size / 1e3:.0f} kB |
"""


def _describe(text: str) -> None:
    """Write the sections into the README, which also describes other samples."""
    start, end = MARKS
    existing = README.read_text(encoding="utf-8") if README.is_file() else "# Samples\n\n"
    before, _, rest = existing.partition(start)
    after = rest.partition(end)[2] or "\n"
    README.write_text(before.rstrip() + f"\n\n{start}\n{text}\n{end}{after}", encoding="utf-8")
    print(f"described in {README.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

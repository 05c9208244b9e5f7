"""One damaged recording by its number: written, diagnosed and rendered."""

import json
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from scripts.mutation.originals import Original, originals
from scripts.mutation.rendered import as_stored, commanding, refused
from scripts.mutation.side_files import as_bytes, mutated, packed
from scripts.mutation.traces import bytes_damaged, restructured
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.recording import MANIFEST, PROGRAM, SAMPLES, Recording
from tfdoctor.recording.run_log import RUN_LOG
from tfdoctor.rules import all_rules
from tfdoctor.stored.files import of_text
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.verdict import Errored

TRACE = Path("plugins", "profile", "run", "vm.xplane.pb")

SPOILED = 0.15
"""Of damaged side files: those that are no JSON."""

SIDE_FILES = 0.45
"""Of the cases: those with a damaged side file."""

STORED = 0.5
"""Of the cases: those whose report is damaged and read again."""

BYTES = 0.25
"""Of damaged traces: those with damaged bytes; the others are traces that say something else."""


DEFECT = "tfdoctor failed to measure"
"""How the trust of a report begins to name a fact that could not be measured."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case; `failure` is a traceback, or "" if there is none."""

    seed: int
    refused: bool = False
    failure: str = ""


@cache
def _rules() -> tuple[Rule, ...]:
    return tuple(all_rules())


def run(seed: int, folder: Path, chosen: Sequence[Original] = ()) -> CaseResult:
    """Write the recording of a number into a folder and read it as `tfdoctor report` does.

    It is one of the samples, or of those ``chosen``.
    """
    _write(folder, seed, chosen or originals())
    try:
        recording = Recording.open(folder)
        diagnosis = diagnose(recording, _rules(), "x", ask_xprof=False)
        failures = [*_failures(diagnosis), *commanding(diagnosis, recording.notes)]
        failures += _of_stored(diagnosis, Random(seed))  # noqa: S311 - to be the same each time
    except InputError as error:
        return CaseResult(seed, refused=True, failure=refused(error))
    except Exception:  # noqa: BLE001 - which is what is looked for
        return CaseResult(seed, failure=traceback.format_exc())
    return CaseResult(seed, failure="\n".join(failures))


def _of_stored(diagnosis: Diagnosis, random: Random) -> Iterator[str]:
    """Yield what a damaged report.json of the diagnosis makes its readers obey."""
    if random.random() < STORED:
        text = json.dumps(mutated(as_stored(diagnosis), random))
        try:
            yield from commanding(of_text(text, Path("report.json"), ()))
        except InputError as error:
            yield from filter(None, [refused(error)])


def _failures(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what a report shows as a defect of tfdoctor's: a rule, or a fact that no rule needs."""
    for result in diagnosis.results:
        if isinstance(result.outcome, Errored):
            yield f"{result.rule.name}: {result.outcome.traceback}"
    yield from (reason for reason in diagnosis.trust.reasons if reason.startswith(DEFECT))


def write_intact(folder: Path, original: Original) -> None:
    """Write a recording as it is."""
    _replace(folder / TRACE, original.trace)
    _side_files(folder, original, Random(0), damage=False)  # noqa: S311 - nothing is drawn


def _write(folder: Path, seed: int, chosen: Sequence[Original]) -> None:
    random = Random(seed)  # noqa: S311 - to be the same each time
    original = random.choice(chosen)
    trace = original.trace
    beside = original.manifest is not None and random.random() < SIDE_FILES
    if not beside or random.random() < SIDE_FILES:
        damage = bytes_damaged if random.random() < BYTES else restructured
        trace = damage(trace, random)
    _replace(folder / TRACE, trace)
    _side_files(folder, original, random, damage=beside)


def _side_files(folder: Path, original: Original, random: Random, *, damage: bool) -> None:
    parts = _parts(original)
    chosen = random.choice(list(parts)) if damage else ""
    for name, data in parts.items():
        if data is None:
            (folder / name).unlink(missing_ok=True)
            continue
        if name != chosen:
            _replace(folder / name, _intact(name, original))
            continue
        spoil = random.random() < SPOILED
        content = data if spoil else mutated(data, random)
        _replace(folder / name, _encoded(name, content, random, spoil=spoil))


def _parts(original: Original) -> dict[str, Any]:
    """Return the side files of a recording as JSON."""
    return {
        MANIFEST: original.manifest,
        PROGRAM: original.program,
        SAMPLES: original.samples,
        RUN_LOG: original.run_log,
    }


@cache
def _intact(name: str, original: Original) -> bytes:
    return _encoded(name, _parts(original)[name], Random(0), spoil=False)  # noqa: S311 - nothing is drawn


def _encoded(name: str, data: object, random: Random, *, spoil: bool) -> bytes:
    if name == PROGRAM:
        return packed(data, random, spoil=spoil)
    if name in {SAMPLES, RUN_LOG}:
        rows = data if isinstance(data, list) else [data]
        return b"\n".join(as_bytes(row, random, spoil=spoil) for row in rows)
    return as_bytes(data, random, spoil=spoil)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)

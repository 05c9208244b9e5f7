"""Makes the recordings on which two versions of tfdoctor are compared: at least 150, none of them in git.

``python -m scripts.recordings FOLDER [PROGRAMS...]`` records every program of the benchmarks, and each ``sick.py``,
``healthy.py``, ``fault.py``, ``fixed.py`` and ``train.py`` of further folders or archives, and writes the
synthetic runs of the tests. What is there is kept. The sample traces and traces of other machines are compared
where they lie:

    python -m scripts.compare_reports FOLDER sample_traces --base REVISION --texts
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import archives
from scripts.synthetic import samples
from tests.synthetic.test_catalogue import PAIRS

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"
ALONE = ("loops", "short", "patched", "versions")
"""Folders of benchmarks in which each file is a program of its own."""

NAMES = {"sick.py", "healthy.py", "fault.py", "fixed.py", "train.py"}
LONGEST_S = 300
"""What a program may take: the longest takes 110 s on two idle cores."""


def main() -> None:
    """Record and write what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("programs", nargs="*", type=Path, metavar="PROGRAMS")
    options = parser.parse_args()
    for name, pair in PAIRS.items():
        for twin in ("sick", "healthy"):
            samples.write(getattr(pair, twin), options.folder / "synthetic" / f"{name} {twin}".replace(" ", "-"))
    sources = (*sorted(BENCHMARKS.rglob("*.zip")), *options.programs)
    for source in sources:
        with archives.unpacked(source) as root:
            for script in sorted(path for path in root.rglob("*.py") if path.name in NAMES):
                record(script, options.folder / source.stem / script.relative_to(root).with_suffix(""))
    for script in alone():
        record(script, options.folder / script.parent.name / script.stem)


def alone() -> Iterator[Path]:
    """Yield the programs that are a file each."""
    for name in ALONE:
        yield from (path for path in sorted((BENCHMARKS / name).glob("*.py")) if not path.name.startswith("_"))


def record(script: Path, out: Path) -> None:
    """Record a program in a copy of its folder; print how it ended."""
    if (out / "tfdoctor.json").is_file():
        return
    work = out.with_name(f"{out.name}-program")
    shutil.copytree(script.parent, work, dirs_exist_ok=True)
    command = [sys.executable, "-m", "tfdoctor", "profile", "--no-report", "--out", str(out.resolve()), script.name]
    try:
        ended = subprocess.run(command, cwd=work, capture_output=True, timeout=LONGEST_S, check=False)  # noqa: S603 - the developer's own
        print(f"{out}: exit code {ended.returncode}", flush=True)
    except subprocess.TimeoutExpired:
        print(f"{out}: not done after {LONGEST_S} s", flush=True)


if __name__ == "__main__":
    main()

"""Times commands that users wait for: the help, a rule's page, and the report of a small trace.

A Python that does nothing takes turns with them, and says how fast the machine is. Bytecode is written, as on a
user's machine.

    python -m benchmarks.starts [--times 10]
"""

import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks import commands

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "cpu-input-bound"
WRITES = {"PYTHONDONTWRITEBYTECODE": ""}


def main() -> None:
    """Print the median of each command in seconds, and the least and the most."""
    parser = commands.parser(__doc__)
    parser.add_argument("--times", type=int, default=10, help="how often each runs; the first time is not counted")
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder:
        asked: dict[str, tuple[str | Path, ...]] = {
            "python -c pass": (commands.TFDOCTOR[0], "-c", "pass"),
            "tfdoctor --help": (*commands.TFDOCTOR, "--help"),
            "tfdoctor explain late-gather": (*commands.TFDOCTOR, "explain", "late-gather"),
            "tfdoctor report cpu-input-bound": (*commands.TFDOCTOR, "report", SAMPLE, "--out", folder),
        }
        taken: dict[str, list[float]] = {name: [] for name in asked}
        for _ in range(times + 1):
            for name, words in asked.items():
                began = time.perf_counter()
                commands.output(*words, variables=WRITES)
                taken[name].append(time.perf_counter() - began)
    for name, (_, *seconds) in taken.items():
        print(f"{name:32} {median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")


if __name__ == "__main__":
    main()

"""How many reports on short steps give figures: ``python -m benchmarks.short_steps`` (``--table`` writes the page).

Profiles each script of ``short/``. The profiler makes short steps longer; from 5 % on, the report is about the step
without the profiler's cost. Where that is not known of steps half as long again, it promises no saving.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks import commands, pages
from tfdoctor.facts.steps.untraced_pace import DISTORTED

SCRIPTS = sorted((Path(__file__).parent / "short").glob("*.py"))

SHORT_MS = 5.0
"""Steps of the corpus below this, untraced, are counted: on a busy machine some are longer."""


@dataclass(frozen=True, slots=True)
class ShortSteps:
    """What a report says of a script's steps; times are medians in ms, None where it does not say."""

    script: str
    traced_ms: float
    untraced_ms: float | None
    corrected: bool  # the report has the parts of the step without the profiler's cost
    promises: int  # findings with a saving

    @classmethod
    def of(cls, script: Path) -> Self:
        """Profile a script.

        Raises:
            FailedError: the script or tfdoctor failed.
        """
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out")
            commands.output(*commands.TFDOCTOR, "profile", "--out", out, script)
            report = commands.report(out)
        parts = report["untraced_breakdown_ms"].values()
        return cls(
            script.stem,
            report["steps"]["median_ms"],
            report["conditions"]["untraced_ms"],
            any(part is not None for part in parts),
            sum(result["saving"] is not None for result in report["results"]),
        )

    @property
    def is_short(self) -> bool:
        """Whether the step is one of those that are counted."""
        return (self.untraced_ms or self.traced_ms) < SHORT_MS

    @property
    def slowdown(self) -> float:
        """How many times as long the step was while traced."""
        return self.traced_ms / self.untraced_ms if self.untraced_ms else 1.0

    @property
    def figures(self) -> str:
        """Of which step the report gives figures: "untraced", "traced" or "none"."""
        if self.corrected:
            return "untraced"
        return "traced" if self.slowdown <= DISTORTED else "none"

    @property
    def row(self) -> str:
        """A row of the table."""
        untraced = f"{self.untraced_ms:.2f} ms" if self.untraced_ms else "-"
        times = f"{untraced} | {self.traced_ms:.2f} ms | {self.slowdown - 1:+.0%}"
        return f"| {self.script} | {times} | {self.figures} | {self.promises} |"


def figures() -> Iterator[str]:
    """Yield the page's part, line by line."""
    yield f"Measured on {pages.today()} on {pages.machine()}.\n"
    yield "| script | untraced | traced | longer by | figures | findings with a saving |"
    yield "|---|---|---|---|---|---|"
    found = []
    for script in SCRIPTS:
        found.append(ShortSteps.of(script))
        yield found[-1].row
    short = [one for one in found if one.is_short]
    untraced, none = (sum(one.figures == kind for one in short) for kind in ("untraced", "none"))
    yield (
        f"\nOf {len(short)} reports on steps under {SHORT_MS:g} ms, {len(short) - none} give figures; {untraced} "
        "of them are of the step without the profiler's cost."
    )


def main() -> None:
    """Print the figures, and write them into the page when asked."""
    pages.publish(__doc__, "overhead.md", "short steps", figures())


if __name__ == "__main__":
    main()

"""Compares `tfdoctor try` with a plain timer: ``python -m benchmarks.trials rounds/4.zip [NAME ...]``.

For each case, the whole fix is tried as one patch: `sick.py` as its fix changes it. Before each round of
the trial, both scripts are timed in processes of their own by `strangers/timer.py`, which knows nothing of the
trial: the pace of the second half, when caches are full. (The speed of a shared machine changes within minutes, and
not for both scripts alike: turns before or after the trial would be of another machine.) The table says whether the
interval of the trial holds that saving, how wide it is, and whether the program as it is differs from itself.
"""

import itertools
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import archives, commands
from benchmarks.strangers.__main__ import timed
from benchmarks.strangers.cases import HEALTHY, SICK, Case, cases
from tfdoctor.capture.plan import Kind
from tfdoctor.diagnosis.trials import Difference, Measured, Trials
from tfdoctor.terms.errors import TfdoctorError
from tfdoctor.trial import trial
from tfdoctor.trial.program import RecordedProgram, Variant
from tfdoctor.trial.running import Runner

RUNS_OF_A_ROUND = 3
"""As it is, with the fix, as it is."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One case: the saving by the timer, by the trial, and of the program against itself."""

    case: Case
    turns: list[float]  # the saving by the timer in each turn, sorted
    trials: Trials

    @property
    def truth(self) -> float | None:
        """The saving by the timer: the median over the turns."""
        return median(self.turns) if self.turns else None

    @property
    def measured(self) -> Measured | None:
        """The saving that the trial measured."""
        return self.trials.rows[0].measured

    @property
    def holds(self) -> bool:
        """Whether the interval holds the timer's saving."""
        one = self.measured
        return one is not None and self.truth is not None and one.low <= self.truth <= one.high

    def line(self) -> str:
        """Return one line of the table."""
        one, itself = self.measured, self.trials.as_is
        truth = "-" if self.truth is None else f"{self.truth:.1%} ({self.turns[0]:.0%} to {self.turns[-1]:.0%})"
        if one is None:
            return f"{self.case.name:<34} timer {truth:<20}  no figure: {self.trials.rows[0].missing}"
        interval = f"{one.share:>6.1%} ({one.low:.1%} to {one.high:.1%})"
        against = "-" if itself is None else f"{itself.share:+.1%} {itself.difference.value}"
        training = self.trials.rows[0].training
        return (
            f"{self.case.name:<34} timer {truth:<20}  try {interval:<28} {'holds' if self.holds else 'MISSES'}"
            f"  half {(one.high - one.low) / 2:.1%}  A/A {against}"
            f"  {self.trials.rounds} rounds, {self.trials.minutes:.1f} min"
            f"  {training.state.value if training else '-'}"
        )


def compare(case: Case, folder: Path, minutes: float) -> Compared:
    """Try the fix in a folder with the twins, and time them plainly before each round."""
    sick, healthy = (folder / f"{twin}.py" for twin in (SICK, HEALTHY))
    program = RecordedProgram((sys.executable, sick.name), folder, Kind.SCRIPT, commands.QUIET)
    fix = Variant("fix", {sick.resolve(): healthy.read_bytes()})
    times: list[dict[str, dict[str, float]]] = []
    runs = itertools.count()

    def beside(_run: str) -> None:
        if next(runs) % RUNS_OF_A_ROUND == 1:  # the first run of all is in no round
            times.extend(timed(case, folder, 1))

    agenda = trial.Agenda([fix], lambda parts: parts[0], minutes, say=beside)
    with tempfile.TemporaryDirectory() as runs_folder:
        trials, _ = trial.conduct(Runner(program, Path(runs_folder).resolve(), layer=True), agenda)
    return Compared(case, case.shares(times, "late_pace_ms"), trials)


def comparable(case: Case) -> bool:
    """Say whether a step of both twins is the same work, and its median tells the saving."""
    return not case.trap and not case.by_mean and len(set(case.per_mark.values())) == 1


def main() -> None:
    """Run the command line."""
    parser = commands.parser(__doc__)
    parser.add_argument("round", type=Path, help="archive or folder of the round's cases")
    parser.add_argument("names", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--minutes", type=float, default=16.0, help="of each trial, with the turns of the timer")
    options = parser.parse_args()
    done = []
    with archives.unpacked(options.round) as cases_folder:
        for case in filter(comparable, cases(cases_folder, options.names)):
            try:
                with tempfile.TemporaryDirectory() as folder:
                    done.append(compare(case, case.written(Path(folder)), options.minutes))
            except TfdoctorError as error:
                print(f"{case.name:<34} {error}", flush=True)
                continue
            print(done[-1].line(), flush=True)
    known = [one for one in done if one.measured is not None and one.truth is not None]
    same = [one for one in done if one.trials.as_is and one.trials.as_is.difference is Difference.NONE]
    print(f"the interval holds the timer's saving in {sum(one.holds for one in known)} of {len(known)}")
    print(f"no difference from itself claimed in {len(same)} of {len(done)}")


if __name__ == "__main__":
    main()

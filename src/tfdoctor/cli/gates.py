"""What makes a command fail: the severity of findings, budgets, and a baseline of known findings."""

from dataclasses import dataclass
from pathlib import Path

import typer

from tfdoctor.cli.options import FOUND, UNDECIDED, GateOptions
from tfdoctor.cli.streams import say
from tfdoctor.cli.values import parse_percent
from tfdoctor.compare import baseline as baselines
from tfdoctor.compare.baseline import Baseline
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.rulebook.config import Budget, BudgetLimit, Config, FailOn
from tfdoctor.terms.units import ratio


@dataclass(frozen=True, slots=True)
class Gates:
    """What the user demands of a run."""

    fail_on: FailOn | None
    budget: Budget
    file: Path | None  # the baseline's
    baseline: Baseline | None
    target: Path | None  # where the findings are written as known ones

    @property
    def set(self) -> bool:
        """Whether anything can make the command fail."""
        return bool(self.budget.limits) or self.fail_on not in (None, FailOn.NEVER)

    def check(self, program: str) -> None:
        """Check that the baselines are those of the program that ran, before anything is written.

        Raises:
            InputError: they are not.
            OutputError: the baseline cannot be written.
        """
        if self.baseline is not None and self.file is not None:
            baselines.must_be_of(self.baseline, program, self.file)
        if self.target is not None:
            baselines.must_be_writable(self.target, program)

    def applied(self, diagnosis: Diagnosis) -> Diagnosis:
        """Return the diagnosis with its budgets checked, and the findings that the baseline knows."""
        from tfdoctor.compare.budgets import checked  # noqa: PLC0415 - brings facts: a script does not wait for them

        if self.budget.limits:  # a stored report may have others
            diagnosis = checked(diagnosis, self.budget)
        self.say_what_is_unchecked(diagnosis)
        return diagnosis if self.baseline is None else baselines.compared(diagnosis, self.baseline, str(self.file))

    def say_what_is_unchecked(self, diagnosis: Diagnosis) -> None:
        """Say that no budget was checked, where all that are set are those of other devices."""
        if self.budget.limits and not diagnosis.budgets:
            say(f"note: no budget was checked: none is set for a {diagnosis.subject.device}")

    def write(self, diagnosis: Diagnosis, program: str, *, quiet: bool = False) -> None:
        """Write the findings as known ones, where that was asked for.

        Raises:
            OutputError: the file cannot be written.
        """
        if self.target is None:
            return
        baselines.write(diagnosis, program, self.target)
        if not quiet:
            typer.echo(f"wrote {self.target}", err=True)


def gates(options: GateOptions, config: Config) -> Gates:
    """Return the demands of the command line, with those of the settings.

    Raises:
        InputError: the baseline cannot be read.
        typer.BadParameter: the share of the hardware is no percentage.
    """
    share, budget = parse_percent(options.fail_on_roofline, "--fail-on-roofline"), config.budget
    if share is not None:
        budget = budget.with_limit(BudgetLimit("roofline", ratio(share)))
    file, target = options.baseline or config.baseline, options.write_baseline
    if file and not options.baseline and file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())  # as messages show it
    if file is not None and target is not None and file.resolve() == target.resolve():
        file = None  # it is written anew, and may not exist yet
    known = baselines.read(file) if file is not None else None
    fail_on = FailOn.NEVER if target is not None else options.fail_on or config.fail_on
    return Gates(fail_on, budget, file, known, target)


def exit_code(diagnosis: Diagnosis, fail_on: FailOn | None) -> int:
    """Return 3 on a failed budget, or on a finding of this severity or above that the baseline does not know.

    Otherwise it is 4 where a budget is undecided, and 0.
    """
    found = [(one.severity, one.known) for one in diagnosis.results]
    if diagnosis.hosts:
        found += [(one.severity, one.known) for one in diagnosis.hosts.findings]
    least = fail_on.severity if fail_on else None
    fails = least is not None and any(severity and severity >= least and not known for severity, known in found)
    if fails or any(check.failed for check in diagnosis.budgets):
        return FOUND
    return UNDECIDED if any(check.undecided for check in diagnosis.budgets) else 0

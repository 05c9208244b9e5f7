"""What makes a command fail: the severity of findings, budgets, and a baseline of known findings."""

from dataclasses import replace
from pathlib import Path
from typing import Self

import typer

from tfdoctor.cli.options import FOUND, UNDECIDED, GateOptions
from tfdoctor.cli.streams import say
from tfdoctor.compare import baseline as baselines
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.rulebook.config import Budget, BudgetLimit, Config, FailOn
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import ratio


class Gates(Record):
    """What the user demands of a run; ``target`` is where its findings are written as known ones."""

    fail_on: FailOn | None
    budget: Budget
    baseline: tuple[baselines.Baseline, str] | None  # with the name of its file
    target: Path | None
    program: str = ""

    @property
    def set(self) -> bool:
        """Whether anything can make the command fail."""
        return bool(self.budget.limits) or self.fail_on not in (None, FailOn.NEVER)

    def of(self, program: str) -> Self:
        """Return the demands of a program that ran: its baselines are checked before anything is written.

        Raises:
            InputError: they are those of another program.
            OutputError: the baseline cannot be written.
        """
        if self.baseline is not None:
            known, file = self.baseline
            baselines.must_be_of(known, program, Path(file))
        if self.target is not None:
            baselines.must_be_writable(self.target, program)
        return replace(self, program=program)

    def applied(self, diagnosis: Diagnosis) -> Diagnosis:
        """Return the diagnosis with its budgets checked, and the findings that the baseline knows."""
        from tfdoctor.compare.budgets import checked  # noqa: PLC0415 - brings facts: a script does not wait for them

        if self.budget.limits:  # a stored report may have others
            diagnosis = checked(diagnosis, self.budget)
            if not diagnosis.budgets:
                say(f"note: no budget was checked: none is set for a {diagnosis.subject.device}")
        return diagnosis if self.baseline is None else baselines.compared(diagnosis, *self.baseline)

    def end(self, diagnosis: Diagnosis, *, quiet: bool = False) -> int:
        """Write the findings as known ones, where that was asked for, and return the exit code.

        Raises:
            OutputError: the file cannot be written.
        """
        if self.target is not None:
            baselines.write(diagnosis, self.program, self.target)
            if not quiet:
                typer.echo(f"wrote {self.target}", err=True)
        return exit_code(diagnosis, self.fail_on)


def gates(options: GateOptions, config: Config) -> Gates:
    """Return the demands of the command line, with those of the settings.

    Raises:
        InputError: the baseline cannot be read.
    """
    budget, share = config.budget, options.fail_on_roofline
    if share is not None:
        others = (one for one in budget.limits if one.key != "roofline")
        budget = replace(budget, limits=(*others, BudgetLimit("roofline", ratio(share))))
    file, target = options.baseline or config.baseline, options.write_baseline
    if file and not options.baseline and file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())  # as messages show it
    if file is not None and target is not None and file.resolve() == target.resolve():
        file = None  # it is written anew, and may not exist yet
    known = None if file is None else (baselines.read(file), str(file))
    fail_on = FailOn.NEVER if target is not None else options.fail_on or config.fail_on
    return Gates(fail_on, budget, known, target)


def exit_code(diagnosis: Diagnosis, fail_on: FailOn | None) -> int:
    """Return 3 on a failed budget, or on a finding of this severity or above that the baseline does not know.

    Otherwise it is 4 where a budget is undecided, and 0.
    """
    found = [(one.severity, one.known) for one in diagnosis.results]
    found += [(one.severity, one.known) for one in (diagnosis.hosts.findings if diagnosis.hosts else ())]
    least = fail_on.severity if fail_on else None
    fails = least is not None and any(severity and severity >= least and not known for severity, known in found)
    if fails or any(check.state.failed for check in diagnosis.budgets):
        return FOUND
    return UNDECIDED if any(check.state.undecided for check in diagnosis.budgets) else 0

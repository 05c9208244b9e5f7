"""What makes a command fail: the severity of findings, budgets, and a baseline of known findings."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from tfdoctor.cli.messages import say
from tfdoctor.cli.options import Fail, FailOn, SavingOptions, parse_file, parse_own, parse_percent
from tfdoctor.cli.rule_selection import failing
from tfdoctor.rulebook.config.budget import BudgetLimit
from tfdoctor.terms.units import ratio

if TYPE_CHECKING:
    from tfdoctor.compare.baseline import Baseline
    from tfdoctor.diagnosis import Diagnosis
    from tfdoctor.examination import Question
    from tfdoctor.rulebook.config import Budget, Config

KnownFindings = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        parser=parse_file,
        metavar="FILE",
        help="File of known findings, or the report.json of an earlier run: its findings do not count for "
        "--fail-on.",
    ),
]
WriteBaseline = Annotated[
    Path | None,
    typer.Option(
        "--write-baseline",
        parser=parse_own,
        metavar="FILE",
        help="Write the findings of this run as known ones, for --baseline; they do not count for --fail-on.",
    ),
]
FailOnRoofline = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="Exit with 3 if the operations of the step would need less than this share of it, such as 40%, at the "
        "peak rates of the hardware.",
    ),
]


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What makes a command fail."""

    fail_on: Fail = None
    fail_on_roofline: FailOnRoofline = None
    baseline: KnownFindings = None
    write_baseline: WriteBaseline = None

    def gates(self, config: "Config") -> "Gates":
        """Return them with those of the settings.

        Raises:
            InputError: the baseline cannot be read.
            typer.BadParameter: the share is no percentage.
        """
        share = parse_percent(self.fail_on_roofline, "--fail-on-roofline")
        if share is not None:
            budget = config.budget.with_limit(BudgetLimit("roofline", ratio(share)))
            config = replace(config, budget=budget)
        return Gates.of(config, self.fail_on, self.baseline, self.write_baseline)


@dataclass(frozen=True, slots=True)
class Gates:
    """What the user demands of a run."""

    fail_on: FailOn | None
    budget: "Budget"
    file: Path | None = None  # the baseline's
    baseline: "Baseline | None" = None
    target: Path | None = None  # where the findings are written as known ones

    @classmethod
    def of(
        cls,
        config: "Config",
        fail_on: FailOn | None = None,
        baseline: Path | None = None,
        target: Path | None = None,
    ) -> Self:
        """Gather the settings of the command line, then of the file.

        Raises:
            InputError: the baseline cannot be read.
        """
        from tfdoctor.compare.baseline import read  # noqa: PLC0415 - keeps --help fast

        file = baseline or config.baseline
        if file and not baseline and file.is_relative_to(Path.cwd()):
            file = file.relative_to(Path.cwd())  # as messages show it
        if file is not None and target is not None and file.resolve() == target.resolve():
            file = None  # it is written anew, and may not exist yet
        known = read(file) if file is not None else None
        severity = FailOn.NEVER if target is not None else failing(fail_on, config)
        return cls(severity, config.budget, file, known, target)

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
        from tfdoctor.compare import baseline  # noqa: PLC0415 - keeps --help fast

        if self.baseline is not None and self.file is not None:
            baseline.must_be_of(self.baseline, program, self.file)
        if self.target is not None:
            baseline.must_be_writable(self.target, program)

    def applied(self, diagnosis: "Diagnosis") -> "Diagnosis":
        """Return the diagnosis with its budgets checked, and the findings that the baseline knows."""
        from tfdoctor.compare.baseline import compared  # noqa: PLC0415 - keeps --help fast
        from tfdoctor.compare.budgets import checked  # noqa: PLC0415 - same

        if self.budget.limits:  # a stored report may have others
            diagnosis = checked(diagnosis, self.budget)
        self.say_what_is_unchecked(diagnosis)
        if self.baseline is None:
            return diagnosis
        return compared(diagnosis, self.baseline, str(self.file))

    def question(self, savings: SavingOptions) -> "Question":
        """Return what a recording is examined for."""
        from tfdoctor.examination import Question  # noqa: PLC0415 - keeps --help fast
        from tfdoctor.facts.savings.price import EnergyPrices  # noqa: PLC0415 - same

        return Question(
            budget=self.budget,
            baseline=None if self.baseline is None else (self.baseline, str(self.file)),
            usd_per_hour=savings.usd_per_hour,
            energy_prices=EnergyPrices(savings.usd_per_kwh, savings.gco2_per_kwh),
            for_epochs=savings.for_epochs,
        )

    def say_what_is_unchecked(self, diagnosis: "Diagnosis") -> None:
        """Say that no budget was checked, where all that are set are those of other devices."""
        if self.budget.limits and not diagnosis.budgets:
            say(f"note: no budget was checked: none is set for a {diagnosis.subject.device}")

    def write(self, diagnosis: "Diagnosis", program: str, *, quiet: bool = False) -> None:
        """Write the findings as known ones, where that was asked for.

        Raises:
            OutputError: the file cannot be written.
        """
        from tfdoctor.compare.baseline import write  # noqa: PLC0415 - keeps --help fast

        if self.target is None:
            return
        write(diagnosis, program, self.target)
        if not quiet:
            typer.echo(f"wrote {self.target}", err=True)

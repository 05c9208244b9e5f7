"""How a command declares its options, once: help, completion, the reference and its values are made of that.

A command is a `Group`: each field is an option, an argument, or a group of options that several commands share.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.models import ParameterInfo

from tfdoctor.cli import values
from tfdoctor.cli.streams import say
from tfdoctor.report.formats import FORMATS
from tfdoctor.rulebook.config import Config, FailOn, RuleNames, find, load
from tfdoctor.terms.options import NUMBERS, SETTINGS
from tfdoctor.terms.pages import built_in_pages

if TYPE_CHECKING:
    from tfdoctor.rulebook.book import Rulebook

FOUND = 3  # Exit code when a budget, ``--fail-on`` or ``--fail-on-promise`` fails and nothing else went wrong
# Exit code when nothing fails, but a budget or ``--max-regression`` lies within the interval that was measured.
UNDECIDED = 4
INTERRUPTED = 130  # Exit code of Ctrl-C, as a shell shows it

app = typer.Typer(
    name="tfdoctor",
    help="Find what slows a TensorFlow training run, on which line, and what a fix saves.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@dataclass_transform(kw_only_default=True)
class Group:
    """Options that belong together; what is not given has its default."""

    def __init__(self, **given: object) -> None:
        declared = {name: one for name, one in vars(type(self)).items() if isinstance(one, ParameterInfo)}
        self.__dict__.update({name: one.default for name, one in declared.items()} | given)


Kind = TypeVar("Kind", bound=type[Group])


def option(says: str, *flags: str, default: object = None, **more: Any) -> Any:  # noqa: ANN401 - of a field's type
    """Declare an option."""
    return typer.Option(default, *flags, help=says, **more)


def switch(says: str, *flags: str) -> Any:  # noqa: ANN401 - same
    """Declare an option without a value."""
    return typer.Option(False, *flags, help=says)  # noqa: FBT003 - its default


def argument(metavar: str, says: str, *, default: object = ..., **more: Any) -> Any:  # noqa: ANN401 - same
    """Declare an argument."""
    return typer.Argument(default, metavar=metavar, help=says, **more)


def command(name: str, short: str, work: str, **more: Any) -> Callable[[Kind], Kind]:  # noqa: ANN401 - Typer's
    """Make a group a command; ``work`` is the function that does it, as ``module.function`` of this package.

    It is imported when the command is called, so that ``--help`` answers at once. It returns the exit code.
    """
    module, _, function = f"{__package__}.{work}".rpartition(".")

    def add(kind: Kind) -> Kind:
        def called(**given: object) -> None:
            made = _made(kind, given)
            raise typer.Exit(getattr(import_module(module), function)(made) or 0)

        called.__doc__, parameters = kind.__doc__, list(_parameters(kind))
        called.__annotations__ = {one.name: one.annotation for one in parameters}
        called.__dict__["__signature__"] = inspect.Signature(parameters)  # what `inspect` returns of it
        app.command(name, short_help=short, **more)(called)
        return kind

    return add


def _parameters(kind: type[Group]) -> Iterator[inspect.Parameter]:
    for name, hint in get_type_hints(kind).items():
        if _is_group(hint):
            yield from _parameters(hint)
        else:
            default = getattr(kind, name, inspect.Parameter.empty)
            yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _made(kind: type[Group], given: dict[str, object]) -> Group:
    """Return a group with what Typer gives."""
    hints = get_type_hints(kind)
    return kind(**{name: _made(hint, given) if _is_group(hint) else given[name] for name, hint in hints.items()})


def _is_group(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Group)


def rules_and_topics() -> list[str]:
    """Return what a list of rules may contain: names, topics and ALL."""
    from tfdoctor.diagnosis.rule import Topic  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.rulebook.config import ALL  # noqa: PLC0415 - same

    return [*built_in_pages(), *Topic, ALL]


def list_of(known: Callable[[], Iterable[str]]) -> dict[str, Any]:
    """Return what an option takes: a comma-separated list, completed with names that it lacks."""

    def complete(incomplete: str) -> Iterator[str]:
        before, comma, last = incomplete.rpartition(",")
        there = before.split(",")
        return (f"{before}{comma}{name}" for name in known() if name.startswith(last) and name not in there)

    return {"metavar": "LIST", "autocompletion": complete}


def count(least: int) -> dict[str, Any]:
    """Return what an option takes: a whole number."""
    return {"metavar": "N", "parser": values.at_least(least)}


def share(name: str) -> dict[str, Any]:
    """Return what the option of this name takes: a percentage."""
    return {"metavar": "PERCENT", "parser": values.share_for(name)}


# What options take.
RULES, RULE_NAMES = list_of(rules_and_topics), list_of(built_in_pages)
TIME: dict[str, Any] = {"metavar": "TIME", "parser": values.parse_seconds}
FILE: dict[str, Any] = {"metavar": "FILE", "parser": values.parse_file}
OWN_FILE: dict[str, Any] = {"metavar": "FILE", "parser": values.parse_own}
OUT: dict[str, Any] = {"metavar": "PATH", "parser": values.parse_out}
PATH: dict[str, Any] = {"metavar": "PATH", "parser": values.parse_path}


def number(name: str) -> Any:  # noqa: ANN401 - same
    """Declare an option that Python and notebooks have as well."""
    one = NUMBERS[name]
    return option(one.says, one.flag, default=one.default, metavar=one.metavar, parser=values.at_least(one.least))


# Options of several commands.
REPORTS = option(
    f"Report formats, comma-separated: {', '.join(FORMATS)}.",
    "--format",
    default="html,json",
    **list_of(lambda: FORMATS),
)
FILES = option(
    f"Also write these files, comma-separated: {', '.join(values.BESIDE)}.",
    "--format",
    default="",
    **list_of(lambda: values.BESIDE),
)
FILES_FOLDER = option("Folder for the files [default: the current folder].", **OUT)
NO_REPORT = switch("Record without a report.", "--no-report")
SHOW = switch("Open the HTML report in the browser.", "--open")
SCRUB = switch(
    "Remove host names, user names, home folders and source lines from the report, so that it can be published.",
    "--scrub",
)
MODULE = option("Run a module instead of a script.", "-m", metavar="MODULE")
FAIL_ON = option(SETTINGS["fail-on"])
BASELINE = option(SETTINGS["baseline"], **FILE)
CONFIG = option(
    "Configuration file [default: the nearest tfdoctor.toml, or pyproject.toml with a table [tool.tfdoctor], from "
    "the current folder upward].",
    **FILE,
)
OWN_RULES = option(f"{SETTINGS['rules']} Can be repeated.", metavar="DIR", parser=values.parse_own)


class RuleOptions(Group):
    """Which rules a command applies."""

    config: Path | None = CONFIG
    select: str | None = option(f"{SETTINGS['select']} Comma-separated.", **RULES)
    ignore: str | None = option(f"{SETTINGS['ignore']} Comma-separated.", **RULES)
    rules: list[Path] | None = OWN_RULES

    def settings(self, *reads: str | Path) -> Config:
        """Return the settings of the file, replaced by those of the command line, which reads these paths.

        Raises:
            ConfigError: the file cannot be read, or a setting is invalid.
        """
        config = load(self.config) if self.config else find(Path(), lambda text: say(f"note: {text}"), reads)
        if self.select is not None:
            config = replace(config, select=RuleNames(tuple(values.comma_separated(self.select)), "--select"))
        if self.ignore is not None:
            config = replace(config, ignore=RuleNames(tuple(values.comma_separated(self.ignore)), "--ignore"))
        return replace(config, rules=(*config.rules, *(self.rules or ())))


def book(config: Config) -> "Rulebook":
    """Return the rules of these settings.

    Raises:
        ConfigError: a name does not exist, or one of the user's own rules is invalid.
    """
    from tfdoctor.rulebook.book import rulebook  # noqa: PLC0415 - no rule is loaded before it is needed

    return rulebook(config)


class GateOptions(Group):
    """What makes a command fail."""

    fail_on: FailOn | None = FAIL_ON
    fail_on_roofline: float | None = option(
        "Exit with 3 if the operations of the step would need less than this share of it, such as 40%, at the peak "
        "rates of the hardware.",
        **share("--fail-on-roofline"),
    )
    baseline: Path | None = BASELINE
    write_baseline: Path | None = option(
        "Write the findings of this run as known ones, for --baseline; they do not count for --fail-on.", **OWN_FILE
    )


class SavingOptions(Group):
    """What savings are told of besides time, and of which run."""

    usd_per_hour: float | None = option(
        "Price per hour of all machines of the job, in US dollars; the report then shows the cost of a step and of "
        "its waste.",
        metavar="PRICE",
        callback=values.price,
    )
    usd_per_kwh: float | None = option(
        "Price of a kWh in US dollars; energy that a counter measured is then shown as money too.",
        metavar="PRICE",
        callback=values.of_a_kwh,
    )
    gco2_per_kwh: float | None = option(
        "CO2 of a kWh in grams, from the supplier of the electricity; energy that a counter measured is then shown "
        "as CO2 too.",
        metavar="GRAMS",
        callback=values.of_a_kwh,
    )
    for_epochs: int | None = number("for_epochs")

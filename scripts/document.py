"""Generates the pages on rules, commands, exit codes and settings, and real output in other pages.

`make docs` writes them. `make check` runs `document.py --check`, which fails if a page is stale.
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import typer

from benchmarks import gallery, run_overhead
from benchmarks.accuracy import results, tables
from benchmarks.strangers import stored as strangers
from benchmarks.whole_run.tables import markdown as whole_programs
from scripts.code_map import facts_page, package_map
from scripts.quoted import account_of, figures_filled, headline_of, report_on, trial_of
from scripts.report_schema import schema
from tfdoctor.cli import FOUND, UNDECIDED, app
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.report.formats import md
from tfdoctor.report.rule_page import generated, limits_table, table
from tfdoctor.rulebook.config import KEYS
from tfdoctor.rulebook.config.budget import BUDGET_KEYS
from tfdoctor.rules import all_rules
from tfdoctor.stored.files import COMPRESSED, open_report
from tfdoctor.terms.errors import TfdoctorError
from tfdoctor.terms.pages import ABOUT, LIMITS, built_in_pages, shown

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "docs" / "rules"
REFERENCE = ROOT / "docs" / "reference"
GALLERY = ROOT / "docs" / "gallery"
WRITTEN = ("*.md", "docs/*.md", "docs/how-to/*.md", "docs/explanation/*.md", "docs/gallery/index.md")
"""Pages written by hand; some have generated passages."""

BANNER = "<!-- Generated from {source} by scripts/document.py: edit that, then run `make docs`. -->\n"

MARKED = re.compile(
    r"(<!-- (sample|account|headline|trial|map|accuracy|strangers|gallery|whole-run|run-overhead) ?(\S*) -->\n)"
    r".*?(<!-- /\2 -->)",
    re.DOTALL,
)
"""A passage that is generated in a hand-written page: a report on a sample or its beginning, a map, results."""

ANSWERS = """\
Each rule has one of four results: a *finding*, *healthy* (with the measured number), *not checked* (with what
is missing), or *failed* (a defect of tfdoctor). What a rule about the recording finds is a *remark* instead of a
finding: it concerns the figures and not the run, and the trust has it.
"""

SCRIPTS_OWN = (
    "`tfdoctor profile`, when the script did not end with 0. "
    "A script killed by signal *n* gives 128 + *n*, as in a shell."
)

TOPICS = {
    Topic.RUN: "The whole run",
    Topic.INPUT: "Input",
    Topic.PRECISION: "Precision and the matrix unit",
    Topic.OPERATIONS: "Operations",
    Topic.EXECUTION: "Execution",
    Topic.SCALE: "Scale",
    Topic.RECORDING: "The recording itself",
}


def main() -> None:
    """Write every page, or with `--check` print the stale ones."""
    current = pages()
    stale = [path for path, text in current.items() if not _is_current(path, text)]
    obsolete = [path for path in RULES.glob("*.md") if path not in current]
    if "--check" in sys.argv[1:]:
        for path in [*stale, *obsolete]:
            print(f"{path.relative_to(ROOT)} is stale: run `make docs`", file=sys.stderr)
        sys.exit(1 if stale or obsolete else 0)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(current[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    for path in obsolete:
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def pages() -> dict[Path, str]:
    """Return the text of every generated page."""
    rules = all_rules()
    return {
        **{path: text for rule in rules for path, text in documented(rule).items()},
        RULES / "index.md": rules_index(rules),
        REFERENCE / "cli.md": cli_page(),
        REFERENCE / "exit-codes.md": exit_codes_page(),
        REFERENCE / "configuration.md": configuration_page(rules),
        REFERENCE / "report.schema.json": json.dumps(schema(), indent=1, sort_keys=True) + "\n",
        REFERENCE / "facts.md": "\n".join([BANNER.format(source="src/tfdoctor/facts/"), *facts_page(rules)]),
        **{
            stored.with_name(stored.name.replace(COMPRESSED, ".md")): md.render(open_report(stored, rules))
            for stored in sorted(GALLERY.glob(f"*{COMPRESSED}"))
        },
        **{path: filled(path) for pattern in WRITTEN for path in sorted(ROOT.glob(pattern))},
    }


def documented(rule: Rule) -> dict[Path, str]:
    """Return the page file of one rule with what is generated in it, and its page in the manual."""
    source = built_in_pages()[rule.name].relative_to(ROOT)
    case = import_module(f"tests.rules.test_{source.stem}")
    written = with_limits(by_hand((ROOT / source).read_text(encoding="utf-8")), limits_table(rule))
    text = f"{written}\n{generated(rule, case.sick, case.healthy)}"
    banner = BANNER.format(source=source.as_posix())
    return {ROOT / source: text, RULES / f"{rule.name}.md": f"{banner}\n{shown(text)}"}


def by_hand(text: str) -> str:
    """Return a page without what is generated."""
    return text.partition(f"\n## {ABOUT}\n")[0].rstrip("\n")


def with_limits(text: str, limits: str) -> str:
    """Return a page with this text in its section of limits; unchanged where it has none."""
    head, heading, rest = text.partition(f"\n## {LIMITS}\n")
    _, following, rest = rest.partition("\n\n## ")
    return f"{head}{heading}\n{limits}{following}{rest}" if heading else text


def _first_line(function: Any) -> str:  # noqa: ANN401 - any function with a docstring
    return (inspect.getdoc(function) or "").splitlines()[0]


def rules_index(rules: tuple[Rule, ...]) -> str:
    """Return the list of rules, by topic."""
    lines = [BANNER.format(source="src/tfdoctor/rules/"), "# The rules\n", ANSWERS]
    for topic, title in TOPICS.items():
        if members := [rule for rule in rules if rule.topic is topic]:
            rows = [(f"[{rule.name}]({rule.name}.md)", rule.doc.title, rule.since) for rule in members]
            lines += [f"## {title}\n", *table(("rule", "what it reports", "since"), rows), ""]
    return "\n".join(lines)


def cli_page() -> str:
    """Return the commands with their arguments and options."""
    lines = [
        BANNER.format(source="src/tfdoctor/cli/"),
        "# The command line\n",
        f"{app.info.help}\n",
        "`tfdoctor --version` prints the version, `tfdoctor COMMAND --help` the text below.",
        "See also the [exit codes](exit-codes.md).\n",
    ]
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined] # it is a group
        lines += _command(name, command)
    return "\n".join(lines)


def _command(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401 - click's, which typer hides
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option"]
    usage = " ".join(one.metavar or one.name.upper() for one in arguments)
    kinds = inspect.signature(command.callback, eval_str=True).parameters
    yield f"## tfdoctor {name}\n"
    yield f"```\ntfdoctor {name} [OPTIONS] {usage}\n```\n"
    yield f"{inspect.cleandoc(command.help)}\n"
    rows = [(f"`{one.metavar or one.name.upper()}`", "", one.help) for one in arguments]
    for one in options:
        value = one.metavar or _value(kinds[one.name].annotation)
        rows.append((f"`{' '.join(filter(None, (one.opts[0], value)))}`", _default(one), one.help))
    yield from table(("argument or option", "default", "meaning"), rows)
    yield ""


def _value(annotation: Any) -> str:  # noqa: ANN401 - a type, or a union of types
    """Return what an option takes, in a word; nothing for a switch."""
    kind, *_ = [k for k in get_args(annotation) if k is not NoneType] or [annotation]
    kind, *_ = [k for k in get_args(kind) if k is not NoneType] or [kind]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "|".join(kind)
    return {bool: "", int: "N", Path: "PATH"}.get(kind, "TEXT")


def _default(option: Any) -> str:  # noqa: ANN401 - click's, which typer hides
    return "" if option.default is None or option.default is False else f"`{option.default}`"


CONFIGURATION = """\
`tfdoctor report`, `profile`, `attach`, `rules` and `explain`, and recordings from Python, read the nearest
`tfdoctor.toml`, or `pyproject.toml` with a table `[tool.tfdoctor]`, from the current folder upward. In a
`tfdoctor.toml` the keys are at the top level, without `tool.tfdoctor`. Names of files and folders in it are
relative to it. `--config FILE` names another file. A file in the folder of a recording, or below it, came with the
recording and sets nothing, since it may name rules, which are code; the rules of a file that lies in what a command
reads, such as `report .`, are not loaded either. The options `--select`, `--ignore`, `--fail-on` and `--baseline`
replace the settings of the file, and `--rules` adds to them. [How to fail a build](../how-to/fail-in-ci.md) shows
`fail-on`, `baseline` and `budget` at work.

```toml
[tool.tfdoctor]
ignore = ["depthwise-convolution"]
fail-on = "warning"

baseline = "tfdoctor-baseline.json"

[tool.tfdoctor.limits.input-bound]
share = 0.1

[tool.tfdoctor.budget]
input-wait = "5%"

[tool.tfdoctor.budget.gpu]
step-ms = 20
```

An unknown key, rule or limit, or a value of the wrong type, ends the command with exit code 2 and one sentence. The
report lists the rules that are switched off and the limits that were changed, with their source.
"""


BUDGETS = """\
Keys of `[tool.tfdoctor.budget]`. In `[tool.tfdoctor.budget.cpu]`, `.gpu` and `.tpu` they hold for runs on this
kind of device, in place of the same key above. Each is checked against the 95 % interval of the measured value; the
command ends with exit code 3 if the whole interval is beyond the limit, or if the value could not be measured, and
with 4 if the interval contains the limit.
"""


def configuration_page(rules: tuple[Rule, ...]) -> str:
    """Return every setting, and the limits of every rule."""
    keys = [(f"`{name}`", f"`{key.example}`", key.meaning) for name, key in KEYS.items()]
    budgets = [(f"`{name}`", f"`{budget.example}`", budget.meaning) for name, budget in BUDGET_KEYS.items()]
    lines = [
        BANNER.format(source="src/tfdoctor/rulebook/config/ and the rules' limits"),
        "# Configuration\n",
        CONFIGURATION,
        *table(("key", "default", "meaning"), keys),
        "\n## Budgets\n",
        BUDGETS,
        *table(("key", "example", "meaning"), budgets),
        "\n## Limits\n",
        *table(("rule", "limit", "default", "what it limits"), _every_limit(rules)),
        "",
    ]
    return "\n".join(lines)


def _every_limit(rules: tuple[Rule, ...]) -> Iterator[tuple[str, str, str, str]]:
    for rule in rules:
        limits: Any = rule.limits
        for field in fields(limits) if limits else ():
            name = f"[{rule.name}](../rules/{rule.name}.md)"
            yield name, f"`{field.name}`", f"{field.default:g}", rule.why(field)


def exit_codes_page() -> str:
    """Return the meaning of each exit code."""
    rows = [
        ("0", "Done. Findings alone do not change the exit code."),
        ("1", "A defect of tfdoctor. Please report its traceback."),
        (str(TfdoctorError.exit_code), "An error that you can fix, explained in one line."),
        (
            str(FOUND),
            (
                "A finding reached the severity given with `--fail-on` (findings about the recording and those in "
                "the baseline excluded); or a budget or `--fail-on-roofline` is exceeded or not "
                "reached, or could not be measured; or a promise was off "
                "by more than `--fail-on-promise`, or none was measured; or `tfdoctor diff` or `tfdoctor history` "
                "shows a regression of more than `--max-regression`."
            ),
        ),
        (
            str(UNDECIDED),
            (
                "Undecided: nothing of the above, but the limit of a budget, or `--max-regression`, lies within "
                "the measured interval, or `tfdoctor history` has too few runs to compare with. More steps or "
                "recordings decide it."
            ),
        ),
        ("the script's own", SCRIPTS_OWN),
    ]
    return "\n".join(
        [
            BANNER.format(source="src/tfdoctor/terms/errors.py and cli/"),
            "# Exit codes\n",
            *table(("code", "meaning"), rows),
            "\nErrors that you can fix:\n",
            *table(("error", "code", "meaning"), list(_errors(TfdoctorError))),
            "",
        ]
    )


def _errors(kind: type[TfdoctorError]) -> Iterator[tuple[str, str, str]]:
    """Yield the kinds of error below one, depth first."""
    for child in kind.__subclasses__():
        yield f"`{child.__name__}`", str(child.exit_code), _first_line(child)
        yield from _errors(child)


def accuracy(stored: Path = results.RESULTS) -> Iterator[str]:
    """Yield the figures of the page on accuracy, from the results that are stored."""
    later = {rule.name for rule in all_rules()} - results.judged_by(stored)
    yield tables.markdown(results.load(stored), sorted(later))


PASSAGES = {
    "map": package_map,
    "accuracy": accuracy,
    "strangers": strangers.markdown,
    "gallery": gallery.markdown,
    "whole-run": whole_programs,
    "run-overhead": run_overhead.markdown,
}
"""What writes each kind of generated passage."""


QUOTED = {"sample": report_on, "account": account_of, "headline": headline_of, "trial": trial_of}
"""What writes each kind of passage about a sample."""


def filled(path: Path) -> str:
    """Return a page written by hand, with the current reports in its marked passages."""

    def fill(marked: re.Match[str]) -> str:
        start, kind, sample, end = marked.groups()
        lines = QUOTED[kind](sample) if kind in QUOTED else PASSAGES[kind]()
        return start + "\n".join(lines) + "\n" + end

    return figures_filled(MARKED.sub(fill, path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()

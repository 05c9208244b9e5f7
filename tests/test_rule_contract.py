"""What every rule promises, whatever it looks for. Each test names the rules that break the promise."""

import importlib
import inspect
from dataclasses import Field, fields
from itertools import chain
from urllib.parse import urlsplit

from tests.kit import *
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import kind_of, needs
from tfdoctor.rules import all_rules
from tfdoctor.terms.pages import SECTIONS
from tfdoctor.terms.verdict import Effect, Finding, Healthy, Measure, RunEffect, Table, Verdict

RULES = all_rules()

VERBS = ("add", "avoid", "check", "enable", "fix", "improve", "reduce", "set", "use")
"""A name that begins with one of these states a remedy; names state faults."""

LEANING = ("of", "that", "their", "beside", "its", "the same", "those", "which", "whose", "it", "this")
"""A label that begins with one of these needs its neighbor to be understood."""

MOST_WORDS = 9
"""Of a title."""

LEAST_WORDS = 4
"""Of the reason for a limit."""


def module_of(rule: Rule) -> ModuleType:
    return importlib.import_module(rule.check.__module__)


def case(rule: Rule) -> ModuleType:
    return importlib.import_module(f"tests.rules.test_{rule.name.replace('-', '_')}")


def finding(rule: Rule) -> Finding:
    verdict = case(rule).sick()
    assert isinstance(verdict, Finding), rule.name
    return verdict


def examples(rule: Rule) -> Iterator[Finding | Healthy]:
    for verdict in (case(rule).sick(), case(rule).healthy()):
        assert isinstance(verdict, Finding | Healthy), rule.name
        yield verdict


def limits_of(rule: Rule) -> tuple[Field[Any], ...]:
    limits: Any = rule.limits
    return fields(limits) if limits else ()


def labels(verdict: Finding | Healthy) -> Iterator[str]:
    for evidence in verdict.evidence:
        match evidence:
            case Measure(label=label):
                yield label
            case Table(columns=columns):
                yield from columns


def written_labels(rule: Rule) -> Iterator[str]:
    """Yield the labels in the rule's source: its examples show only some of them."""
    for node in ast.walk(tree_of(rule)):
        match node:
            case ast.Call(func=ast.Name("Measure" | "Table"), args=[label, *_]):
                yield from strings(label)
            case ast.Call(func=ast.Attribute(ast.Name("Measure"), "share"), args=[label, *_]):
                yield from strings(label)
            case ast.Call(func=ast.Attribute(ast.Name("Table"), "of"), args=[_, *columns]):
                for column in columns:
                    assert isinstance(column, ast.Tuple)
                    yield from strings(column.elts[0])
            case ast.Assign(targets=[ast.Name("label" | "columns" | "COLUMNS")], value=label):
                yield from strings(label)
            case _:
                continue


def tree_of(rule: Rule) -> ast.Module:
    return ast.parse(inspect.getsource(module_of(rule)))


def strings(expression: ast.expr) -> Iterator[str]:
    """Yield the strings of a label or of column names, an f-string by its first part."""
    match expression:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=[first, *_]):
            yield from strings(first)
        case ast.Tuple(elts=columns):
            for column in columns:
                yield from strings(column)
        case _:
            return


def has_a_bare_backslash(rule: Rule) -> bool:
    """Whether a text begins with a backslash: one that was to join lines of the source and was doubled."""
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("\\\n")
        for node in ast.walk(tree_of(rule))
    )


def leans(label: str) -> bool:
    return bool(re.match(rf"(?:{'|'.join(LEANING)})\b", label, re.IGNORECASE))


def is_plain_line(verdict: Verdict) -> bool:
    assert isinstance(verdict, Finding | Healthy)
    summary = verdict.summary
    return bool(summary) and summary == summary.strip() and not re.search(r"[\n`*<>]|\.$", summary)


def has_good_links(rule: Rule) -> bool:
    text = "\n".join(rule.doc.sections.values())
    links = re.findall(r"\]\(([^)]*)\)", text)
    parts = [urlsplit(link) for link in links]
    return (
        bool(links)
        and len(links) == len(re.findall(r"https?://", text))
        and not any(re.search(r"\s", link) for link in links)
        and all(part.scheme == "https" for part in parts)
        and all(re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", part.netloc) for part in parts)
    )


def asks_for_facts_alone(rule: Rule) -> bool:
    parts = (rule.check, *rule.preconditions)
    kinds = [kind_of(annotation) for part in parts for annotation in needs(part).values()]
    return bool(kinds) and all(
        f"{kind.__module__}.".startswith(("tfdoctor.facts.", f"{rule.check.__module__}."))
        and (callable(getattr(kind, "measure", None)) or hasattr(kind, "ABSENT"))
        for kind in kinds
    )


def has_limits_that_reach_it(rule: Rule) -> bool:
    if rule.limits is None:
        return not hasattr(module_of(rule), "Limits")
    parameters = inspect.signature(rule.check).parameters
    return "limits" in parameters and not reads_defaults(rule)


def reads_defaults(rule: Rule) -> bool:
    """Whether the rule reads ``Limits().share`` and the like, and so ignores the limit that the user set."""
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "Limits"
        for node in ast.walk(tree_of(rule))
    )


def examples_say_what_they_are(rule: Rule) -> bool:
    texts = [inspect.getdoc(example) or "" for example in (case(rule).sick, case(rule).healthy)]
    return all(re.fullmatch(r"[A-Z0-9].*\.", text, re.DOTALL) for text in texts)


def has_a_title(rule: Rule) -> bool:
    return bool(re.fullmatch(r"[A-Z].*[^.]", rule.doc.title)) and len(rule.doc.title.split()) <= MOST_WORDS


PROMISES: dict[str, Callable[[Rule], bool]] = {
    "the sick example is found": lambda rule: isinstance(case(rule).sick(), Finding),
    "the healthy example is healthy": lambda rule: isinstance(case(rule).healthy(), Healthy),
    "a finding has evidence": lambda rule: bool(finding(rule).evidence),
    "a finding has remedies": lambda rule: (
        bool(finding(rule).remedies) and all(remedy.action for remedy in finding(rule).remedies)
    ),
    "no code or text begins with a bare backslash": lambda rule: not has_a_bare_backslash(rule),
    "a finding has effects or a severity": lambda rule: bool(
        finding(rule).effects or finding(rule).run_effects or finding(rule).severity
    ),
    "effects never make a stage slower": lambda rule: all(
        0.0 <= effect.scales <= 1.0
        for effect in chain[Effect | RunEffect](finding(rule).effects, finding(rule).run_effects)
    ),
    "a summary is one plain line without full stop": lambda rule: all(map(is_plain_line, examples(rule))),
    "the examples say what they are": examples_say_what_they_are,
    "the name is in lower case and states a fault": lambda rule: (
        bool(re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.name)) and not rule.name.startswith(VERBS)
    ),
    "the title is a sentence of at most nine words": has_a_title,
    "the page has its sections and no other": lambda rule: tuple(rule.doc.sections) == SECTIONS,
    "links are https and well formed": has_good_links,
    "what it asks for are facts": asks_for_facts_alone,
    "every fact reaches it, for a default keeps one away": lambda rule: (
        not [
            name
            for name, parameter in inspect.signature(rule.check).parameters.items()
            if name != "limits" and parameter.default is not inspect.Parameter.empty
        ]
    ),
    "its limits reach it": has_limits_that_reach_it,
    "a limit is a number with a reason that stands alone": lambda rule: all(
        isinstance(field.default, float)
        and len(rule.why(field).split()) >= LEAST_WORDS
        and not leans(rule.why(field))
        for field in limits_of(rule)
    ),
    "a limit that is a share ends at the whole": lambda rule: all(
        field.metadata["most"] == 1.0
        for field in limits_of(rule)
        if re.search(r"\bshare of\b", rule.why(field), re.IGNORECASE)
    ),
    "a label stands alone": lambda rule: (
        not any(leans(label) for verdict in examples(rule) for label in labels(verdict))
        and not any(map(leans, written_labels(rule)))
    ),
    "it says since when it exists": lambda rule: bool(re.fullmatch(r"\d+\.\d+\.\d+", rule.since)),
}


@each(*PROMISES)
def test_every_rule_keeps(promise: str) -> None:
    assert [rule.name for rule in RULES if not PROMISES[promise](rule)] == []


@cases(("of it without compute", True), ("that it holds", True), ("offset of the window", False))
def test_a_label_that_needs_its_neighbor_is_recognized(label: str, *, expected: bool) -> None:
    assert leans(label) is expected

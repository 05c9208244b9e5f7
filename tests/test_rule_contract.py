"""What every rule promises, whatever it looks for."""

import importlib
import inspect
import re
from dataclasses import fields
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest

from tfdoctor.facts.chart import kind_of, needs
from tfdoctor.rule import SECTIONS, Rule
from tfdoctor.rules import all_rules
from tfdoctor.verdict import Finding, Healthy, Verdict

RULES = all_rules()

VERBS = ("add", "avoid", "check", "enable", "fix", "improve", "reduce", "set", "use")
"""A name that begins with one of these states a remedy; names state faults."""

pytestmark = pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])


def module_of(rule: Rule) -> ModuleType:
    return importlib.import_module(rule.check.__module__)


def found(rule: Rule) -> Finding:
    verdict = rule.sick()
    assert isinstance(verdict, Finding)
    return verdict


def test_the_sick_example_is_found(rule: Rule) -> None:
    assert isinstance(rule.sick(), Finding)


def test_the_healthy_example_is_healthy(rule: Rule) -> None:
    assert isinstance(rule.healthy(), Healthy)


def test_a_finding_has_proof_and_remedy(rule: Rule) -> None:
    assert found(rule).evidence
    assert found(rule).remedies
    assert all(remedy.action for remedy in found(rule).remedies)


def test_a_finding_has_an_effect_on_the_step_or_a_severity_of_its_own(rule: Rule) -> None:
    assert found(rule).effects or found(rule).severity


def test_effects_never_make_a_stage_slower(rule: Rule) -> None:
    assert all(0.0 <= effect.scales <= 1.0 for effect in found(rule).effects)


@pytest.mark.parametrize("example", ["sick", "healthy"])
def test_a_summary_is_one_plain_line_without_full_stop(rule: Rule, example: str) -> None:
    verdict: Verdict = getattr(rule, example)()
    assert isinstance(verdict, Finding | Healthy)

    assert verdict.summary.strip() == verdict.summary
    assert verdict.summary
    assert not re.search(r"[\n`*<>]|\.$", verdict.summary)


def test_the_examples_say_what_they_are(rule: Rule) -> None:
    for example in (rule.sick, rule.healthy):
        assert re.fullmatch(r"[A-Z0-9].*\.", inspect.getdoc(example) or "", re.DOTALL)


def test_the_name_states_a_fault(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.name)
    assert not rule.name.startswith(VERBS)


def test_the_module_begins_with_the_fault_in_a_sentence(rule: Rule) -> None:
    first = inspect.getdoc(module_of(rule)) or ""

    assert re.fullmatch(r"[A-Z].*\.", first.splitlines()[0])
    assert rule.doc.title


def test_the_documentation_has_its_sections_and_no_other(rule: Rule) -> None:
    assert tuple(rule.doc.sections) == SECTIONS


def test_links_are_https_and_well_formed(rule: Rule) -> None:
    text = "\n".join(rule.doc.sections.values())
    links = re.findall(r"\]\(([^)]*)\)", text)

    assert links
    assert len(links) == len(re.findall(r"https?://", text))
    for link in links:
        parts = urlsplit(link)
        assert parts.scheme == "https"
        assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", parts.netloc)
        assert not re.search(r"\s", link)


def test_what_it_needs_are_facts(rule: Rule) -> None:
    kinds = [kind_of(annotation) for annotation in needs(rule.check).values()]

    assert kinds
    for kind in kinds:
        assert kind.__module__.startswith("tfdoctor.facts.")
        assert callable(getattr(kind, "measure", None))


def test_limits_say_what_they_limit(rule: Rule) -> None:
    if rule.limits is None:
        assert not hasattr(module_of(rule), "Limits")
        return
    assert "limits" in inspect.signature(rule.check).parameters
    for one in fields(rule.limits):  # type: ignore[arg-type] # a rule's Limits are a dataclass
        assert isinstance(one.default, float)
        assert len(one.metadata["why"].split()) >= MIN_WORDS


def test_a_share_has_an_upper_end(rule: Rule) -> None:
    """With more than the whole its rule would be off, and nobody told."""
    limits: Any = rule.limits
    for one in fields(limits) if limits else ():
        if one.metadata["why"].startswith(WHOLES):
            assert one.metadata["most"] == 1.0, one.name


WHOLES = ("of the step", "of the compute time", "of the time", "of the traced time")

MIN_WORDS = 5


def test_it_says_since_when_it_exists(rule: Rule) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", rule.since)

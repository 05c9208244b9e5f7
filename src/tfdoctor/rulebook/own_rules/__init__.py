"""The user's own rules: modules like the built-in ones, in a folder of the user."""

import importlib.util
import re
import sys
from collections.abc import Collection, Iterable
from dataclasses import fields, is_dataclass, replace
from inspect import signature
from pathlib import Path
from types import ModuleType

from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.facts.chart import kind_of, needs
from tfdoctor.rulebook.own_rules.guarded import guarded
from tfdoctor.rulebook.own_rules.imports import advice
from tfdoctor.rulebook.own_rules.lines import line_of
from tfdoctor.terms.errors import ConfigError

PACKAGE = "tfdoctor_own_rules"  # Package of these modules, so that none hides another module of the same name

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

# Modules in such a folder that are not rules: tests, and code that rules share.
NO_RULE = re.compile(r"_.*|test_.*|conftest")

PARTS = ("TOPIC", "check", "sick", "healthy")


def load(folders: Iterable[Path], taken: Collection[str]) -> tuple[Rule, ...]:
    """Return the rules of these folders, sorted by name; ``taken`` are the names of other rules.

    Raises:
        ConfigError: a folder does not exist, or a module in it is not a valid rule.
    """
    rules: dict[str, Rule] = {}
    for path in (path for folder in folders for path in _modules(folder)):
        rule = _rule(path)
        if rule.name in taken or rule.name in set(Topic):
            kind = "a topic" if rule.name in set(Topic) else "a built-in rule"
            raise ConfigError(f"{path}: {rule.name} is the name of {kind}: rename the file.")
        if rule.name in rules:
            raise ConfigError(f"{path}: another rule is named {rule.name}: rename one of the files.")
        rules[rule.name] = rule
    return tuple(rules[name] for name in sorted(rules))


def _modules(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder: name the folder with your rules.")
    modules = sorted(path for path in folder.glob("*.py") if not NO_RULE.fullmatch(path.stem))
    if not modules:
        raise ConfigError(f"{folder} contains no rule: a rule is a file such as slow_checkpoint.py.")
    return modules


def _rule(path: Path) -> Rule:
    if not NAME.fullmatch(path.stem):
        raise ConfigError(f"{path}: name the file in lowercase with underscores, such as slow_checkpoint.py.")
    module = _imported(path)
    for part in PARTS:
        if not hasattr(module, part):
            raise ConfigError(f"{path} defines no {part}: a rule defines {', '.join(PARTS)}.")
    if not isinstance(module.TOPIC, Topic):
        topics = ", ".join(f"Topic.{topic.name}" for topic in Topic)
        raise ConfigError(f"{path}: TOPIC must be one of {topics}.")
    _check_parts(module, path)
    _check_needs(module, path)
    try:
        return guarded(replace(Rule.from_module(module), own=True), path)
    except ValueError as error:
        raise ConfigError(f"{path}: the docstring is not a rule page: {error}.") from error


def _imported(path: Path) -> ModuleType:
    """Run a module.

    Raises:
        ConfigError: it fails, in whichever way.
    """
    spec = importlib.util.spec_from_file_location(f"{PACKAGE}.{path.stem}", path)
    assert spec is not None  # noqa: S101 - for a file that ends in .py there always is one
    assert spec.loader is not None  # noqa: S101 - same
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[spec.name]
        line, message = line_of(error, path), " ".join(str(error).split())
        said = f"{path}{line} cannot be loaded: {type(error).__name__}: {message}."
        raise ConfigError(f"{said}{advice(error, path)}") from error
    return module


def _check_parts(module: ModuleType, path: Path) -> None:
    """Check that a rule's functions are callable and that ``check`` takes its limits."""
    for part in ("check", "sick", "healthy"):
        if not callable(getattr(module, part)):
            raise ConfigError(f"{path}: {part} must be a function.")
    takes = "limits" in signature(module.check).parameters
    limits = getattr(module, "Limits", None)
    if takes and limits is None:
        raise ConfigError(f"{path}: check has a parameter limits, but the module has no dataclass Limits.")
    if limits is not None and not takes:
        raise ConfigError(f"{path} has Limits, but check has no parameter `limits: Limits = LIMITS`.")
    if limits is not None:
        _check_limits(limits, path)


def _check_needs(module: ModuleType, path: Path) -> None:
    """Check that a rule asks for facts only, so that an error shows here and not in each report."""
    try:
        parts = (module.check, *getattr(module, "PRECONDITIONS", ()))
        wanted = {name: kind_of(kind) for part in parts for name, kind in needs(part).items()}
    except Exception as error:  # whatever an annotation does when it is evaluated
        raise ConfigError(f"{path}: the parameters of check must be annotated with facts: {error}.") from error
    for name, kind in wanted.items():
        if not hasattr(kind, "measure") and not hasattr(kind, "ABSENT"):
            raise ConfigError(f"{path}: the parameters of check must be annotated with facts, but {name} is not.")


def _check_limits(limits: object, path: Path) -> None:
    if not isinstance(limits, type) or not is_dataclass(limits):
        raise ConfigError(f"{path}: Limits must be a frozen dataclass.")
    for field in fields(limits):
        if not field.metadata.get("why") or not isinstance(field.default, int | float):
            raise ConfigError(f'{path}: define Limits.{field.name} with limit(0.1, "what it limits, and why").')

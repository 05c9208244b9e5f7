"""Rules of the user's own: modules of the same kind as tfdoctor's, in a folder of theirs."""

import importlib.util
import re
import sys
from collections.abc import Collection, Iterable
from dataclasses import fields, is_dataclass, replace
from inspect import signature
from pathlib import Path
from types import ModuleType

from tfdoctor.errors import ConfigError
from tfdoctor.facts.chart import kind_of, needs
from tfdoctor.rule import Rule, Topic
from tfdoctor.rulebook.own_rules.guarded import guarded
from tfdoctor.rulebook.own_rules.lines import line_of

PACKAGE = "tfdoctor_own_rules"
"""Below it stand the names of the modules, so that none hides a module of the same name."""

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

NO_RULE = re.compile(r"_.*|test_.*|conftest")
"""Modules that may lie beside rules: tests of them, and what they share."""

PARTS = ("TOPIC", "check", "sick", "healthy")


def load(folders: Iterable[Path], taken: Collection[str]) -> tuple[Rule, ...]:
    """Return the rules of these folders, by name; the names ``taken`` are those of other rules.

    Raises:
        ConfigError: a folder does not exist, or a module in it is no rule; the sentence says why.
    """
    rules: dict[str, Rule] = {}
    for path in (path for folder in folders for path in _modules(folder)):
        rule = _rule(path)
        if rule.name in taken or rule.name in set(Topic):
            kind = "a topic" if rule.name in set(Topic) else "a rule of tfdoctor"
            raise ConfigError(f"{path}: {rule.name} is {kind}: give the file another name.")
        if rule.name in rules:
            raise ConfigError(f"{path}: there is another rule {rule.name}: rename one of them.")
        rules[rule.name] = rule
    return tuple(rules[name] for name in sorted(rules))


def _modules(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder: name the one that holds your rules.")
    found = sorted(path for path in folder.glob("*.py") if not NO_RULE.fullmatch(path.stem))
    if not found:
        raise ConfigError(f"{folder} holds no rule: a rule is a file such as slow_checkpoint.py.")
    return found


def _rule(path: Path) -> Rule:
    if not NAME.fullmatch(path.stem):
        raise ConfigError(
            f"{path}: a rule's file has small letters and underscores, as slow_checkpoint.py has."
        )
    module = _imported(path)
    for part in PARTS:
        if not hasattr(module, part):
            raise ConfigError(f"{path} has no {part}: every rule has {', '.join(PARTS)}.")
    if not isinstance(module.TOPIC, Topic):
        topics = ", ".join(f"Topic.{topic.name}" for topic in Topic)
        raise ConfigError(f"{path}: TOPIC must be one of {topics}.")
    _check_parts(module, path)
    _check_needs(module, path)
    try:
        return guarded(replace(Rule.from_module(module), own=True), path)
    except ValueError as error:
        raise ConfigError(f"{path}: its docstring is no page of a rule: {error}.") from error


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
        line = line_of(error, path)
        said = " ".join(str(error).split())
        raise ConfigError(
            f"{path}{line} cannot be loaded: {type(error).__name__}: {said}."
        ) from error
    return module


def _check_parts(module: ModuleType, path: Path) -> None:
    """See that a rule's functions can be called, and that its limits reach ``check``."""
    for part in ("check", "sick", "healthy"):
        if not callable(getattr(module, part)):
            raise ConfigError(f"{path}: {part} must be a function.")
    takes = "limits" in signature(module.check).parameters
    limits = getattr(module, "Limits", None)
    if takes and limits is None:
        raise ConfigError(f"{path}: check takes limits, but there is no dataclass Limits.")
    if limits is not None and not takes:
        raise ConfigError(
            f"{path} has Limits, but check has no parameter `limits: Limits = LIMITS`."
        )
    if limits is not None:
        _check_limits(limits, path)


def _check_needs(module: ModuleType, path: Path) -> None:
    """See that every fact that ``check`` asks for is one, so that it fails here and not in each report."""
    try:
        wanted = {name: kind_of(kind) for name, kind in needs(module.check).items()}
    except Exception as error:  # whatever an annotation does when it is evaluated
        raise ConfigError(
            f"{path}: check must name the facts it needs by type: {error}."
        ) from error
    for name, kind in wanted.items():
        if not hasattr(kind, "measure"):
            raise ConfigError(
                f"{path}: check must name the facts it needs by type, and {name} names none."
            )


def _check_limits(limits: object, path: Path) -> None:
    if not isinstance(limits, type) or not is_dataclass(limits):
        raise ConfigError(f"{path}: Limits must be a frozen dataclass.")
    for one in fields(limits):
        if not one.metadata.get("why") or not isinstance(one.default, int | float):
            raise ConfigError(
                f'{path}: Limits.{one.name} must be made with limit(0.1, "what it limits, and why").'
            )

"""The user's own rules: modules like the built-in ones, in a folder of the user."""

import importlib.util
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from traceback import walk_tb
from types import ModuleType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.facts.chart import Unavailable, kind_of, needs
from tfdoctor.rulebook.values import LONGEST
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.units import Unit
from tfdoctor.terms.verdict import Finding, Healthy, NotApplicable, Verdict

PACKAGE = "tfdoctor_own_rules"  # Package of these modules, so that none hides another module of the same name

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

# Modules in such a folder that are not rules: tests, and code that rules share.
NO_RULE = re.compile(r"_.*|test_.*|conftest")

CALLED = ("check", "sick", "healthy")  # What a rule defines besides its topic

NO_FACT = " There is no such fact: the page of the manual on facts lists them."


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
    for part in ("TOPIC", *CALLED):
        if not hasattr(module, part):
            raise ConfigError(f"{path} defines no {part}: a rule defines TOPIC, {', '.join(CALLED)}.")
    if not isinstance(module.TOPIC, Topic):
        topics = ", ".join(f"Topic.{topic.name}" for topic in Topic)
        raise ConfigError(f"{path}: TOPIC must be one of {topics}.")
    _check_parts(module, path)
    try:
        rule = Rule.from_module(module)
        guarded: Any = {name: _guarded(getattr(rule, name), name, path) for name in CALLED if getattr(rule, name)}
        return replace(rule, own=True, **guarded)
    except ValueError as error:
        raise ConfigError(f"{path}: the docstring is not a rule page: {error}.") from error


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{PACKAGE}.{path.stem}", path)
    assert spec is not None  # noqa: S101 - for a file that ends in .py there always is one
    assert spec.loader is not None  # noqa: S101 - same
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[spec.name]
        line, message = _line_of(error, path), " ".join(str(error).split())
        said = f"{path}{line} cannot be loaded: {type(error).__name__}: {message}."
        of_fact = isinstance(error, ImportError) and (error.name or "").startswith("tfdoctor.facts")
        raise ConfigError(f"{said}{NO_FACT if of_fact else ''}") from error
    return module


def _line_of(error: BaseException, path: Path) -> str:
    """Return the last line of this file that a failure passed through, as ``:12``; "" for none."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}" if error.lineno else ""
    passed = walk_tb(error.__traceback__)
    lines = [line for frame, line in passed if Path(frame.f_code.co_filename).absolute() == path.absolute()]
    return f":{lines[-1]}" if lines else ""


def _check_parts(module: ModuleType, path: Path) -> None:
    for part in CALLED:
        if not callable(getattr(module, part)):
            raise ConfigError(f"{path}: {part} must be a function.")
    takes = "limits" in signature(module.check).parameters
    limits = getattr(module, "Limits", None)
    if takes and limits is None:
        raise ConfigError(f"{path}: check has a parameter limits, but the module has no dataclass Limits.")
    if limits is not None and not takes:
        raise ConfigError(f"{path} has Limits, but check has no parameter `limits: Limits = LIMITS`.")
    if limits is not None and (not isinstance(limits, type) or not is_dataclass(limits)):
        raise ConfigError(f"{path}: Limits must be a frozen dataclass.")
    for field in fields(limits) if limits is not None else ():
        if not field.metadata.get("why") or not isinstance(field.default, int | float):
            raise ConfigError(f'{path}: define Limits.{field.name} with limit(0.1, "what it limits, and why").')
    try:  # does it ask for facts only? An error shows here, and not in each report
        parts = (module.check, *getattr(module, "PRECONDITIONS", ()))
        wanted = {name: kind_of(kind) for part in parts for name, kind in needs(part).items()}
    except Exception as error:  # whatever an annotation does when it is evaluated
        raise ConfigError(f"{path}: the parameters of check must be annotated with facts: {error}.") from error
    for name, kind in wanted.items():
        if not hasattr(kind, "measure") and not hasattr(kind, "ABSENT"):
            raise ConfigError(f"{path}: the parameters of check must be annotated with facts, but {name} is not.")


def _guarded(function: Callable[..., Verdict], name: str, path: Path) -> Callable[..., Verdict]:
    """Return a function of the user's that returns a verdict, or raises a ConfigError that names the file."""

    @wraps(function)
    def call(*facts: object, **named: object) -> Verdict:
        try:
            verdict = function(*facts, **named)
        except Unavailable:
            raise
        except (Exception, SystemExit) as error:
            message = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":.")
            line = _line_of(error, path)
            raise ConfigError(f"{path}{line}: {name} failed: {message}.") from error
        if wrong := fault(verdict):
            raise ConfigError(f"{path}: {name} returned {wrong}.")
        return verdict

    return call


def fault(returned: object) -> str:
    """Return what a rule returned instead of a verdict: "None, which is not a ..."; "" for a verdict."""
    if not isinstance(returned, Finding | Healthy | NotApplicable):
        return f"{_shown(returned)}, which is not a Finding, Healthy or NotApplicable"
    wrong = _wrong(returned, type(returned), type(returned).__name__)
    effects = returned.effects if isinstance(returned, Finding) and not wrong else ()
    for effect in effects:
        if not 0.0 <= effect.scales < math.inf:
            return f"an Effect with scales={effect.scales:g}: it must be finite and at least 0; 1 means no change"
        if effect.of and (effect.of.unit is not Unit.MILLISECONDS or not 0.0 <= effect.of.value < math.inf):
            return "an Effect whose `of` is not a time: write of=ms(3.2)"
    return wrong


def _wrong(value: Any, kind: Any, where: str) -> str:  # noqa: ANN401 - whatever a rule put there
    """Return where a value does not match its annotation; all items of a tuple have the same one."""
    if get_origin(kind) is tuple:
        if not isinstance(value, tuple):
            return f"{where} = {_shown(value)}, which is not a tuple: write (x,) for a single item"
        faults = (_wrong(item, get_args(kind)[0], f"{where}[{at}]") for at, item in enumerate(value))
        return next(filter(None, faults), "")
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if float in kinds and isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    if not isinstance(value, tuple(kinds)):
        known = " or ".join(str(getattr(kind, "__name__", kind)) for kind in kinds)
        return f"{where} = {_shown(value)}, which is not a {known}"
    if not is_dataclass(value):
        return ""
    hints = get_type_hints(type(value))
    faults = (_wrong(getattr(value, one.name), hints[one.name], f"{where}.{one.name}") for one in fields(value))
    return next(filter(None, faults), "")


def _shown(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    shown = repr(value)
    return shown if len(shown) <= LONGEST and "\n" not in shown else f"a {type(value).__name__}"

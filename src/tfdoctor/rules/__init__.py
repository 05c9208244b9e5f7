"""Every module and every package in this package is one rule. Nothing is registered by hand.

A package also holds what is the rule's alone: ``edit.py`` with its mechanical edits (``EDITS``), and facts that
no other rule reads.
"""

import importlib
import pkgutil

from tfdoctor.diagnosis.rule import Rule


def all_rules() -> tuple[Rule, ...]:
    """Return every rule, ordered by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(Rule.from_module(importlib.import_module(f"{__name__}.{n}")) for n in names)

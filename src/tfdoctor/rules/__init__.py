"""Every module and every package with a page beside it is one rule. Nothing is registered by hand.

The folder is a rule's topic, or says it as ``TOPIC``. A rule that is a package also holds what is the rule's alone:
``edit.py`` with its mechanical edits (``EDITS``), and facts that no other rule reads.
"""

import importlib
from functools import cache

from tfdoctor.diagnosis.rule import Rule
from tfdoctor.terms.pages import built_in_pages


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, ordered by name."""
    modules = [f"{__name__}.{page.parent.name}.{page.stem}" for page in built_in_pages().values()]
    return tuple(Rule.from_module(importlib.import_module(module)) for module in modules)

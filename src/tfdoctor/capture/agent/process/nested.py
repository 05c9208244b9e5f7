"""Structures of the user's, of tuples, lists and dictionaries within each other."""

from __future__ import annotations


def leaves(value: object) -> list[object]:
    """Return what a structure holds that is none itself, and not None, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return [] if value is None else [value]
    return [leaf for part in value for leaf in leaves(part)]

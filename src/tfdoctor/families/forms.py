"""Cheaper forms of what a line calls in a library: a row for each, in forms.toml."""

import tomllib
from functools import cache
from pathlib import Path

from tfdoctor.facts.run_work.line_groups import package_and_name

SAME, OFTEN = "same", "often"  # The forms that apply whatever the call is for, and those that mostly do


@cache
def _forms() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def cheaper_form(function: str, *kinds: str) -> str:
    """Return what to do instead of calling a function of a library, by its full name; "" is not known."""
    package, name = package_and_name(function)
    names = (".".join(function.split(".")[-2:]), name)
    known = (_forms()[kind].get(package, {}) for kind in kinds or (SAME, OFTEN))
    return next((form for own in known for one in names if (form := own.get(one))), "")

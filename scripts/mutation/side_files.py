"""Damage to side files: values of other types at any place in the JSON, and bytes that are not JSON."""

import gzip
import json
from copy import deepcopy
from random import Random
from typing import Any

Json = Any

DEEP = 60
"""Nested brackets that json.loads accepts, but recursive readers may not."""

ENDLESS = 100_000
"""Nested brackets that json.loads refuses."""

DEEPER = 0.85
"""The probability to descend into an object or a list."""

HOSTILE = (
    "\x1b]0;PWNED\x07\x1b[2J", "\u202eevil\u2066", "\ud800x", "a\0b", "::error::pwned", "a\n::stop-commands::x\n",
    "  \r\n ::add-mask::x", "##[group]x", "##vso[task.complete]", "a\n##teamcity[x]", "\x9b31m", "\x1b[31m",
    "</script><script>alert(1)</script>", "`\n```\n# x", "{{7*7}}", "../../x", "/x" * 3000, " " * 8000, "1" * 6000,
    "a." * 4000, "x" * 20_000, "[" * 300, "'; import os #", "$(id)", "|a|b|", "\u2028::error::x", "\x85::error::x",
    "2026-13-45T99:99:99Z", "::notice file=a,line=1::%0A", "e\u0301", "\U0001f468\u200d\U0001f469",
)  # fmt: skip
"""Texts that command a terminal, a page or a CI runner, or take long."""

VALUES: tuple[Json, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 0.0, 1.5, -0.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), 2**31,
    2**53, 2**63 - 1, 2**63, 2**70, -(2**63), 10**400, "", "text", "12", "nan", "\0", "\ud800", "x" * 400,
    [], {}, [None], [1, [2]], ["a", 1], [{}], [[], {}], {"a": 1}, {"": None}, {"name": []},
)  # fmt: skip
"""Values that replace valid ones."""


def mutated(data: Json, random: Random) -> Json:
    """Return JSON that differs at one to four places."""
    changed = [deepcopy(data)]
    for _ in range(random.randint(1, 4)):
        _change(changed, random)
    return changed[0]


def _change(root: list[Json], random: Random) -> None:
    """Change the value at a random place; `root` contains the document."""
    holder: Json = root
    key: Json = 0
    while isinstance(holder[key], dict | list) and holder[key] and random.random() < DEEPER:
        holder = holder[key]
        key = random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    change = random.randrange(10)
    if change == 0 and holder is not root:
        del holder[key]
    elif change == 1 and holder is not root and isinstance(holder, list):
        holder.append(deepcopy(holder[key]))
    elif change == 2:  # noqa: PLR2004 - one of ten changes
        holder[key] = _wrapped(holder[key], random)
    elif change == 3 and holder is not root and isinstance(holder, dict):  # noqa: PLR2004 - same
        holder[random.choice(HOSTILE)] = holder.pop(key)
    elif change >= 8:  # noqa: PLR2004 - same
        _texts(root, random)
    else:
        holder[key] = deepcopy(random.choice(VALUES))


def _texts(root: list[Json], random: Random) -> None:
    """Add a hostile text to the texts below a random place, or put it in their place."""
    hostile, whole = random.choice(HOSTILE), random.random() < HALF
    waiting: list[Json] = [root]
    while waiting:
        holder = waiting.pop()
        for key, value in [*(holder.items() if isinstance(holder, dict) else enumerate(holder))]:
            if isinstance(value, dict | list):
                waiting.append(value)
            elif isinstance(value, str) and random.random() < OFTEN:
                holder[key] = hostile if whole else value + hostile


OFTEN, HALF = 0.1, 0.5
"""Shares of the texts that are changed, and of the changes that replace them."""


def _wrapped(value: Json, random: Random) -> Json:
    """Return a nested or repeated value."""
    match random.randrange(4):
        case 0:
            return [value]
        case 1:
            return {"value": value}
        case 2:
            return [deepcopy(value) for _ in range(3)]
        case _:
            for _ in range(DEEP):
                value = [value]
            return value


def damaged(data: bytes, random: Random) -> bytes:
    """Return bytes that are usually not JSON."""
    match random.randrange(6):
        case 0:
            return b""
        case 1:
            return data[: random.randrange(len(data) + 1)]
        case 2:
            return b"[" * ENDLESS
        case 3:
            return data.replace(b":", b":" + b"9" * 5000, 1)
        case _:
            at = random.randrange(len(data)) if data else 0
            return data[:at] + random.randbytes(random.randint(1, 8)) + data[at + 1 :]


def as_bytes(data: Json, random: Random, *, spoil: bool) -> bytes:
    """Return JSON as bytes of a file, damaged if `spoil`."""
    text = json.dumps(data).encode()
    return damaged(text, random) if spoil else text


def packed(data: Json, random: Random, *, spoil: bool) -> bytes:
    """Return JSON as a compressed file; if `spoil`, damaged before or after compression."""
    before = spoil and random.random() < 0.5  # noqa: PLR2004 - either
    compressed = gzip.compress(as_bytes(data, random, spoil=before), compresslevel=1, mtime=0)
    return damaged(compressed, random) if spoil and not before else compressed

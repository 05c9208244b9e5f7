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
    change = random.randrange(8)
    if change == 0 and holder is not root:
        del holder[key]
    elif change == 1 and holder is not root and isinstance(holder, list):
        holder.append(deepcopy(holder[key]))
    elif change == 2:  # noqa: PLR2004 - one of eight changes
        holder[key] = _wrapped(holder[key], random)
    else:
        holder[key] = deepcopy(random.choice(VALUES))


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

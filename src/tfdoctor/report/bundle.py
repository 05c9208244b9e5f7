"""plotly.js, compressed, as text that fits into a script element.

The part of it that the page draws with (``make plotly``) has 1.3 MB, gzip and base 85 make 0.5 MB of it, and the
browser undoes both.
"""

import gzip
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib import resources

import numpy as np

BUNDLE = "plotly.js.gz"

# RFC 1924's, with ``,`` for ``<``: so the text can neither close nor open an element.
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~"


@cache
def plotly() -> str:
    """Return the script, gzipped and in base 85 (four bytes as five characters of ALPHABET)."""
    return base_85(_packed())


@cache
def plotly_hash() -> str:
    """Return the hash by which a page's policy lets the script run, wherever the page has it from."""
    return script_hash(gzip.decompress(_packed()))


def script_hash(script: bytes | str) -> str:
    """Return the hash under which a page's policy lets this script run, and no other."""
    data = script.encode() if isinstance(script, str) else script
    return f"sha256-{b64encode(sha256(data).digest()).decode('ascii')}"


def _packed() -> bytes:
    return resources.files("tfdoctor.report").joinpath("assets", BUNDLE).read_bytes()


def base_85(data: bytes) -> str:
    """Return bytes in base 85, as base64.b85encode does with its own alphabet, which takes 20 times as long."""
    missing = -len(data) % 4
    words = np.frombuffer(data + bytes(missing), ">u4").astype(np.uint32)
    digits = np.empty((len(words), 5), np.uint8)
    for place in reversed(range(5)):
        words, digits[:, place] = np.divmod(words, np.uint32(85))
    text = np.frombuffer(ALPHABET.encode(), np.uint8)[digits].tobytes().decode("ascii")
    return text[: len(text) - missing]

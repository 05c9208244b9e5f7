"""plotly.js, compressed, as text that fits into a script element.

gzip and base 85 make 1.8 MB of its 4.8 MB; the browser undoes both. zlib needs a tenth of a second, in which it
lets Python go on: so a thread packs the script while the rest of a page is made.
"""

import gzip
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import numpy as np
from plotly.offline import get_plotlyjs

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~"
"""RFC 1924's, with ``,`` for ``<``: so the text can neither close nor open an element."""


def plotly() -> str:
    """Return the script, gzipped and in base 85 (four bytes as five characters of ALPHABET)."""
    return packing().result()


@cache
def packing() -> Future[str]:
    """Begin to pack the script, once."""
    with_one = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plotly")
    packed = with_one.submit(_packed)
    with_one.shutdown(wait=False)
    return packed


def _packed() -> str:
    return base_85(gzip.compress(get_plotlyjs().encode(), compresslevel=9, mtime=0))


def base_85(data: bytes) -> str:
    """Return bytes in base 85, as base64.b85encode does with its own alphabet, which takes 20 times as long."""
    missing = -len(data) % 4
    words = np.frombuffer(data + bytes(missing), ">u4").astype(np.uint32)
    digits = np.empty((len(words), 5), np.uint8)
    for place in reversed(range(5)):
        words, digits[:, place] = np.divmod(words, np.uint32(85))
    text = np.frombuffer(ALPHABET.encode(), np.uint8)[digits].tobytes().decode("ascii")
    return text[: len(text) - missing]

"""The files that a pipeline reads: how many, how large, and whether they are remote; never their names."""

from __future__ import annotations

import re

from ..process.kept import os
from . import image_sizes, mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import Foreign, Tensor, TfDataset

# Paths of TensorFlow's file systems that lie across a network.
REMOTE = re.compile(r"(gs|s3|s3a|http|https|hdfs|viewfs|abfs|abfss|az|oss|cns)://")
LONGEST = 1000  # Bytes of a text that may be a path
MOST_SIZES = 16  # Files whose size is read: training waits meanwhile


def describe(dataset: TfDataset) -> dict[str, object] | None:
    """Return {count, scheme, bytes, image, file_system} of a list of paths, or None; bytes is the median of a few.

    image is the median [height, width] of a few files, None where they are not images.

    A dataset that reads records has the files that it was given.
    """
    given = getattr(dataset, "_filenames", dataset)
    for tensor in getattr(given, "_tensors", None) or ():
        if getattr(tensor.dtype, "name", "") == "string" and tensor.shape.rank:
            found = _described(tensor)
            if found:
                return found
    return None


def _described(tensor: Tensor) -> dict[str, object] | None:
    rows, count = int(tensor.shape[0]), tensor.shape.num_elements()
    if not count or not hasattr(tensor, "numpy"):
        return None
    stride = max(1, rows // MOST_SIZES)
    texts = [_first(tensor[at].numpy()) for at in range(0, rows, stride)[:MOST_SIZES]]
    if any(len(text) > LONGEST or b"\0" in text for text in texts):
        return None
    paths = [text.decode("utf-8", "replace") for text in texts]
    remote = REMOTE.match(paths[0])
    if remote:
        return {"count": int(count), "scheme": remote[1], "bytes": None}
    if not all(map(os.path.isfile, paths)):
        return None
    sizes = sorted(map(os.path.getsize, paths))
    return {
        "count": int(count),
        "scheme": "",
        "bytes": sizes[len(sizes) // 2],
        "image": image_sizes.median(paths),
        "file_system": mounts.file_system(paths[0]),
    }


def _first(row: Foreign) -> bytes:
    """Return the first text of a row of paths, or the row where it is one."""
    first: bytes = row if isinstance(row, bytes) else row.ravel()[0]
    return first

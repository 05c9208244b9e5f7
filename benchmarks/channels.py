"""What the time of convolutions and dense layers does between multiples of 16 channels on this CPU.

The figures behind ``ONEDNN_TILE`` and ``AMX_TILE`` of ``facts/run/hardware.py``: run
``python -m benchmarks.channels``. Each width takes turns with 128 channels, so that a noisy machine hits both.
"""

from collections.abc import Callable

import tensorflow as tf

from benchmarks.precision import conv, filter_gradient, input_gradient
from benchmarks.turns import Run, typical

CHANNELS = (32, 33, 48, 64, 96, 98, 100, 104, 108, 112, 120, 124, 126, 130, 132, 136, 144, 152, 160)
REFERENCE = 128


def convolution(channels: int, dtype: str, part: str) -> Run:
    """Return one part of the training step of a 3x3 convolution of 16 images of 24 x 24."""
    x = tf.cast(tf.random.normal((16, 24, 24, channels)), dtype)
    w = tf.cast(tf.random.normal((3, 3, channels, channels)), dtype)
    parts = {
        "forward": lambda: conv(x, w),
        "input gradient": lambda: input_gradient(x, w),
        "filter gradient": lambda: filter_gradient(x, w),
    }
    return tf.function(parts[part])


def dense(channels: int, dtype: str, part: str) -> Run:
    """Return one part of the training step of a dense layer on 8192 rows."""
    x = tf.cast(tf.random.normal((8192, channels)), dtype)
    w = tf.cast(tf.random.normal((channels, channels)), dtype)
    parts = {
        "forward": lambda: tf.matmul(x, w),
        "input gradient": lambda: tf.matmul(x, w, transpose_b=True),
        "filter gradient": lambda: tf.matmul(x, x, transpose_a=True),
    }
    return tf.function(parts[part])


def relative(make: Callable[[int, str, str], Run], channels: int, dtype: str, part: str) -> float:
    """Return the time per useful multiplication relative to 128 channels, by the least of 25 turns."""
    own, reference = typical([make(n, dtype, part) for n in (channels, REFERENCE)], 25, min)
    return own / reference * (REFERENCE / channels) ** 2


def main() -> None:
    """Print, for each kind, type and part, the cost of a multiplication relative to 128 channels."""
    for make in (convolution, dense):
        for dtype in ("float32", "bfloat16"):
            for part in ("forward", "input gradient", "filter gradient"):
                costs = [f"{n}:{relative(make, n, dtype, part):.2f}" for n in CHANNELS]
                print(f"{make.__name__:12}{dtype:9} {part:16}", *costs, flush=True)


if __name__ == "__main__":
    main()

"""Fused against separate batch normalization on this CPU, by number of channels.

The figures behind ``rules/operations/unfused_batch_norm.py``: ``python -m benchmarks.batch_norm``. Both take turns.
"""

from functools import partial

import tensorflow as tf

from benchmarks.precision import with_gradients
from benchmarks.turns import typical

CHANNELS = (8, 16, 24, 30, 32, 33, 40, 48, 64, 66, 96)


def fused(x: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
    """Normalize in one operation."""
    return tf.compat.v1.nn.fused_batch_norm(x, scale, tf.zeros_like(scale))[0]


def separate(x: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
    """Normalize as Keras 3 does."""
    mean, variance = tf.nn.moments(x, [0, 1, 2], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, tf.zeros_like(scale), scale, 1e-3)


def compare(channels: int, rounds: int = 9) -> tuple[float, float]:
    """Return the median seconds of the fused and of the separate form, gradients included."""
    x, scale = tf.random.normal((32, 48, 48, channels)), tf.ones(channels)
    runs = [partial(with_gradients(form), x, scale) for form in (fused, separate)]
    fused_s, separate_s = typical(runs, rounds)
    return fused_s, separate_s


def main() -> None:
    """Print one row per number of channels."""
    for channels in CHANNELS:
        fused_s, separate_s = compare(channels)
        print(f"{channels:4} channels: fused {fused_s * 1e3:6.2f} ms, separate {separate_s * 1e3:6.2f} ms, "
              f"ratio {fused_s / separate_s:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()

"""How long operations take in float64, bfloat16 and float16 relative to float32 on this CPU.

The figures behind ``facts/run/hardware.py``'s Float64 and Float16 entries: ``python -m benchmarks.dtypes``.
The types take turns, so that a noisy machine hits all of them.
"""

from functools import partial

import tensorflow as tf

from benchmarks.precision import Call, Case, conv, filter_gradient, input_gradient
from benchmarks.turns import typical

TYPES = ("float64", "float32", "bfloat16", "float16")

IMAGES, KERNEL = (16, 32, 32, 64), (3, 3, 64, 64)

VALUES = (32, 128, 768)
"""12 MB in float32."""

CASES: tuple[Case, ...] = (
    ("add", lambda x, y: x + y, VALUES, VALUES),
    ("multiply", lambda x, y: x * y, VALUES, VALUES),
    ("relu", lambda x, _: tf.nn.relu(x), VALUES, VALUES),
    ("tanh", lambda x, _: tf.tanh(x), VALUES, VALUES),
    ("exp", lambda x, _: tf.exp(x), VALUES, VALUES),
    ("mean", lambda x, _: tf.reduce_mean(x, [0, 1]), VALUES, VALUES),
    ("matmul 256 x 1024 x 1024", tf.matmul, (256, 1024), (1024, 1024)),
    ("matmul 64 x 512 x 512", tf.matmul, (64, 512), (512, 512)),
    ("matmul 1024 x 1024 x 1024", tf.matmul, (1024, 1024), (1024, 1024)),
    ("matmul, 64 of 128 x 64 x 128", tf.matmul, (64, 128, 64), (64, 64, 128)),
    ("filter gradient 3x3, 64, 32x32", filter_gradient, IMAGES, KERNEL),
    ("conv 3x3, 64, 32x32", conv, IMAGES, KERNEL),
    ("input gradient 3x3, 64, 32x32", input_gradient, IMAGES, KERNEL),
)


def milliseconds(call: Call, x: tuple[int, ...], w: tuple[int, ...], rounds: int = 7) -> dict[str, float]:
    """Return the least time of each type, in turns."""
    run = tf.function(call)
    given = {dtype: [tf.cast(tf.random.normal(shape), dtype) for shape in (x, w)] for dtype in TYPES}
    least = typical([partial(run, *pair) for pair in given.values()], rounds, min)
    return {dtype: seconds * 1e3 for dtype, seconds in zip(given, least, strict=True)}


def main() -> None:
    """Print one row per case."""
    for name, call, x, w in CASES:
        times = milliseconds(call, x, w)
        cells = [f"{dtype} {ms:.2f} ms ({ms / times['float32']:.2f})" for dtype, ms in times.items()]
        print(f"{name:32}", *cells, flush=True)


if __name__ == "__main__":
    main()

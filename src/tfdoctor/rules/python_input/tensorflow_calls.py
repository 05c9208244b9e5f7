"""What TensorFlow has in place of functions that make input in Python, by the functions' names.

Stack samples name functions that are written in Python, such as ``numpy.convolve``, and of those in C only what a
line calls by a module's name: no methods of NumPy's random generators, or of strings.
Source: https://www.tensorflow.org/api_docs/python/tf. A test runs each expression and compares its result.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple


class Equivalent(NamedTuple):
    """An expression of one row, text or image, and one of TensorFlow's, of many where both names are plural."""

    python: str
    tensorflow: str
    condition: str = ""  # where the two are equal: "for kernels of odd length"; "" is always


def in_place(calls: Iterable[tuple[str, float]]) -> tuple[str, ...]:
    """Return TensorFlow's code in place of the functions that take most, by their times or samples."""
    return tuple(
        f"# in place of {' '.join(filter(None, (same.python, same.condition)))}:\nresult = {same.tensorflow}"
        for same in equivalents(calls)
    )


def equivalents(calls: Iterable[tuple[str, float]]) -> tuple[Equivalent, ...]:
    """Return what TensorFlow has in place of the functions that take most, of full names and times or samples."""
    taken: dict[str, float] = defaultdict(float)
    for function, amount in calls:
        package, name = function.partition(".")[0], function.rpartition(".")[2]
        taken[f"{package}.{name}"] += amount  # modules between them differ from version to version
    least = SMALL * sum(taken.values())
    large = (key for key in sorted(taken, key=lambda key: -taken[key]) if taken[key] >= least)
    return tuple(dict.fromkeys(EQUIVALENTS[key] for key in large if key in EQUIVALENTS))


SMALL = 0.1  # Share of the time below which a function is not worth an example of what replaces it


DECODE = Equivalent(
    "PIL.Image.open(path)", "tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)"
)

EQUIVALENTS = {
    "numpy.convolve": Equivalent(
        'numpy.convolve(row, kernel, mode="same")',
        'tf.nn.conv1d(rows[..., None], kernel[::-1, None, None], 1, "SAME")[..., 0]',
        "for kernels of odd length that are no longer than a row",
    ),
    "numpy.fft": Equivalent("numpy.fft.fft(row)", "tf.signal.fft(tf.cast(rows, tf.complex64))"),
    "numpy.rfft": Equivalent("numpy.fft.rfft(row)", "tf.signal.rfft(rows)"),
    "numpy.mean": Equivalent("numpy.mean(row)", "tf.reduce_mean(rows, axis=-1)"),
    "numpy.std": Equivalent("numpy.std(row)", "tf.math.reduce_std(rows, axis=-1)"),
    "numpy.norm": Equivalent("numpy.linalg.norm(row)", "tf.norm(rows, axis=-1)"),
    "numpy.sort": Equivalent("numpy.sort(row)", "tf.sort(rows, axis=-1)"),
    "numpy.clip": Equivalent("numpy.clip(row, low, high)", "tf.clip_by_value(rows, low, high)"),
    "numpy.roll": Equivalent("numpy.roll(row, shift)", "tf.roll(rows, shift, axis=-1)"),
    "numpy.flip": Equivalent("numpy.flip(row)", "tf.reverse(rows, axis=[-1])"),
    "numpy.pad": Equivalent("numpy.pad(row, (before, after))", "tf.pad(rows, [(0, 0), (before, after)])"),
    "re.sub": Equivalent(
        "re.sub(pattern, new, text)",
        "tf.strings.regex_replace(texts, pattern, new)",
        "for patterns in the syntax of RE2",
    ),
    "PIL.open": DECODE,
    "PIL.load": DECODE,
    "PIL.convert": DECODE,
    "PIL.resize": Equivalent(
        "PIL.Image.Image.resize((width, height), PIL.Image.Resampling.BILINEAR)",
        "tf.image.resize(image, (height, width), antialias=True)",
        "but for rounding",
    ),
}

"""What a convolution's time does between multiples of 16 channels on this CPU.

The figures behind ``facts/run/hardware.py``'s ONEDNN_TILE: ``python -m benchmarks.channels``.
"""

import statistics

import tensorflow as tf

from benchmarks.precision import conv, seconds, with_gradients

CHANNELS = (16, 24, 30, 32, 33, 40, 48, 49, 63, 64, 65, 72, 80)


def milliseconds(channels: int, rounds: int = 11) -> float:
    """Return the median time of a 3x3 convolution and its gradients."""
    x = tf.random.normal((32, 32, 32, channels))
    w = tf.random.normal((3, 3, channels, channels))
    run = with_gradients(conv)
    run(x, w)
    return statistics.median(seconds(run, x, w) for _ in range(rounds)) * 1e3


def main() -> None:
    """Print the time, and the time per useful multiplication relative to 64 channels."""
    unit = milliseconds(64) / 64**2
    for channels in CHANNELS:
        time = milliseconds(channels)
        print(
            f"{channels:4} channels {time:8.2f} ms  {time / channels**2 / unit:5.2f} x the cost of 64"
        )


if __name__ == "__main__":
    main()

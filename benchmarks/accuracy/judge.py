"""Applies some of the advised changes to any script of the corpus, and times their effect.

``python -m benchmarks.accuracy.judge random_crop_map/fixed`` runs the script alone, with its input
ready (the first batch again and again), in mixed_bfloat16, and with what its maps make kept in memory.
What ``corpus.py`` declares beside the planted faults rests on this: a wait for input is there when ready
input saves at least 5 % of the step, slow float32 products when 16 bit do, and work that a cache would
spare when a cache does (whether it may stand there, a script's random operations tell).
"""

import runpy
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import commands
from benchmarks.accuracy.corpus import chosen
from benchmarks.accuracy.runs import step_ms
from benchmarks.loops import stopwatch

BATCHES = 150


def ready() -> None:
    """Make all datasets repeat their first batch."""
    import tensorflow as tf

    original: Callable[..., Iterator[Any]] = tf.data.Dataset.__iter__

    def first(self: Any) -> Iterator[Any]:
        return original(self.take(1).cache().repeat(BATCHES).prefetch(2))

    tf.data.Dataset.__iter__ = first


def cached_maps() -> None:
    """Cache the output of each map; a repetition before the map moves after it."""
    import tensorflow as tf

    mapped: Callable[..., Any] = tf.data.Dataset.map
    again: Callable[..., Any] = tf.data.Dataset.repeat
    put_off, done = False, False

    def repeat(self: Any, count: int | None = None) -> Any:
        nonlocal put_off
        put_off = put_off or not done
        return again(self, count) if done else self

    def cached(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal done
        dataset, done = mapped(self, *args, **kwargs).cache(), True
        return again(dataset) if put_off else dataset

    tf.data.Dataset.map, tf.data.Dataset.repeat = cached, repeat


def narrow() -> None:
    """Set the policy before any layer is created; models return float32, as their last layer should."""
    import keras

    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    original: Callable[..., Any] = keras.Model.__call__

    def wide(self: Any, *args: Any, **kwargs: Any) -> Any:
        return keras.tree.map_structure(
            lambda tensor: keras.ops.cast(tensor, "float32"), original(self, *args, **kwargs)
        )

    keras.Model.__call__ = wide


CHANGES = {"ready": ready, "narrow": narrow, "kept": cached_maps}


def savings(script: str, changes: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Return the share of the step that each change saves, in each round."""
    saved: dict[str, list[float]] = {change: [] for change in changes}
    for _ in range(rounds):
        alone = step_ms(script)
        for change, shares in saved.items():
            shares.append(1.0 - step_ms("-m", __spec__.name, "--inside", change, script) / alone)
    return saved


def main() -> None:
    """Judge the named scripts; with --inside, run one script with a change."""
    if sys.argv[1:2] == ["--inside"]:
        sys.modules["stopwatch"] = stopwatch  # a second one would write its own, empty list
        CHANGES[sys.argv[2]]()
        runpy.run_path(sys.argv[3], run_name="__main__")
        return
    parser = commands.parser(__doc__)
    parser.add_argument("--change", choices=tuple(CHANGES), action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for pair, twin in ((pair, twin) for pair, twins in chosen(options.names) for twin in twins):
            script = str(pair.script(twin, Path(folder)))
            found = savings(script, options.change or tuple(CHANGES), options.rounds)
            said = "; ".join(f"{name} {_text(shares)}" for name, shares in found.items())
            print(f"{pair.name}/{twin}: {said}", flush=True)


def _text(shares: Sequence[float]) -> str:
    by_round = ", ".join(f"{share:+.0%}" for share in shares)
    return f"saves {statistics.median(shares):+.0%} ({by_round})"


if __name__ == "__main__":
    main()

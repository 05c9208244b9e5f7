"""Makes two of the advised changes by hand, to any script of the corpus, and times what they do.

``python benchmarks/accuracy/judge.py random_crop_map/fixed`` runs the script alone, with its input
ready (the first batch again and again), and in mixed_bfloat16. What ``corpus.py`` declares beside the
planted faults rests on this: a wait for input is there when ready input saves at least 5 % of the step,
and slow float32 products when 16 bit do.
"""

import runpy
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

from corpus import TWINS, chosen
from runs import step_ms

ROUNDS, BATCHES = 3, 150


def ready() -> None:
    """Let all datasets repeat their first batch."""
    import tensorflow as tf

    original: Callable[..., Iterator[Any]] = tf.data.Dataset.__iter__

    def first(self: Any) -> Iterator[Any]:
        return original(self.take(1).cache().repeat(BATCHES).prefetch(2))

    tf.data.Dataset.__iter__ = first


def narrow() -> None:
    """Set the policy before any layer is made."""
    import keras

    keras.mixed_precision.set_global_policy("mixed_bfloat16")


CHANGES = {"ready": ready, "narrow": narrow}


def saving(script: str, change: str) -> tuple[float, float]:
    """Return the median step in ms, and the median share of it that a change saves."""
    pairs = [(step_ms(script), step_ms(__file__, change, script)) for _ in range(ROUNDS)]
    alone = statistics.median(before for before, _ in pairs)
    return alone, statistics.median(1.0 - after / before for before, after in pairs)


def main() -> None:
    """Judge the scripts named; run one with a change when told so by ourselves."""
    if len(sys.argv) > 1 and sys.argv[1] in CHANGES:
        CHANGES[sys.argv[1]]()
        runpy.run_path(sys.argv[2], run_name="__main__")
        return
    for pair, twins in chosen(sys.argv[1:]):
        for twin in [twin for twin in TWINS if twin in twins]:
            script = str(pair.script(twin))
            steps, found = zip(*(saving(script, change) for change in CHANGES), strict=True)
            said = ", ".join(f"{n} {s:+.0%}" for n, s in zip(CHANGES, found, strict=True))
            print(f"{pair.name}/{twin}: {min(steps):.1f} ms; saves: {said}", flush=True)


if __name__ == "__main__":
    main()

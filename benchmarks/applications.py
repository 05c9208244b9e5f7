"""What the changes that docs/gallery promises really save: ``python -m benchmarks.applications [MODEL ...]``.

Each model of keras.applications is trained as it comes, with fused batch normalization (the layer that
`tfdoctor explain unfused-batch-norm` gives), in mixed_bfloat16, and with both, by turns and within one
process, without tfdoctor and with a plain timer. The shares are medians over the turns.
"""

import os
import sys
import time
from statistics import median
from typing import Any

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}

import keras
import numpy as np
import tensorflow as tf

from tfdoctor.rules import unfused_batch_norm

TURNS = {"MobileNetV2": 6, "EfficientNetB0": 6, "ResNet50": 5, "VGG16": 3}
BATCH, STEPS = 8, 2
AS_IT_COMES = "as it comes"


def variants(name: str) -> dict[str, Any]:
    """Return the model and its changed copies, compiled."""
    make = getattr(keras.applications, name)
    variants = {}
    for policy, fused in (("float32", "fused"), ("mixed_bfloat16", "fused and mixed_bfloat16")):
        keras.mixed_precision.set_global_policy(policy)
        plain = make(weights=None)
        variants[AS_IT_COMES if policy == "float32" else policy] = plain
        if any(type(layer) is keras.layers.BatchNormalization for layer in plain.layers):
            variants[fused] = clone(plain)
    for model in variants.values():
        model.compile("adam", "sparse_categorical_crossentropy")
    return variants


def clone(model: Any) -> Any:
    """Run the remedy's own code on a model."""
    scope = {"keras": keras, "tf": tf, "model": model}
    exec(f"{unfused_batch_norm.DROP_IN}\n\n\n{unfused_batch_norm.CLONE}", scope)  # noqa: S102 - it is ours
    return scope["clone"]


def took(model: Any, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the ms of a step, over two of them."""
    begun = time.perf_counter()
    for _ in range(STEPS):
        model.train_on_batch(images, labels)
    return (time.perf_counter() - begun) * 1e3 / STEPS


def main(names: list[str]) -> None:
    """Print a table's row for each model."""
    print("| model | a step as it comes | change | saved |\n|---|--:|---|--:|")
    images = np.random.default_rng(1).random((BATCH, 224, 224, 3), dtype=np.float32)
    labels = np.random.default_rng(2).integers(0, 1000, BATCH)
    for name in names or TURNS:
        models = variants(name)
        for model in models.values():
            took(model, images, labels)  # traces the function
        rows = [
            {change: took(model, images, labels) for change, model in models.items()}
            for _ in range(TURNS.get(name, 5))
        ]
        base = median(row[AS_IT_COMES] for row in rows)
        for change in [change for change in models if change != AS_IT_COMES]:
            saved = median(1 - row[change] / row[AS_IT_COMES] for row in rows)
            print(f"| {name} | {base:.0f} ms | {change} | {saved:.0%} |", flush=True)
        keras.backend.clear_session()


if __name__ == "__main__":
    main(sys.argv[1:])

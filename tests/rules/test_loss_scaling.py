"""loss-scaling: which runs must scale the loss, which do, and which are unknown."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.kit import *
from tfdoctor.rules.precision.loss_scaling import check


def example(
    dtype: str = "float16", name: str = "gradient_tape/model/dense/MatMul", also: str = "",
    optimizer: str | None = "SGD", *, loss_scale: bool = False,
) -> Verdict:  # fmt: skip
    """A custom loop computes float16 gradients with a plain SGD optimizer."""
    matmul = Operation(name=name, type="MatMul", outputs=((dtype, (16, 32)),), layer="dense")
    others = (Operation(name="check", type=also),) if also else ()
    settings = RunSettings(optimizer=optimizer, loss_scale=loss_scale)
    return check(Program((matmul, *others), settings=settings))


sick = example


def healthy() -> Verdict:
    """The custom loop uses a LossScaleOptimizer."""
    return example(loss_scale=True)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a custom loop computes float16 gradients with a plain SGD optimizer"] = sick()
    told["it uses a LossScaleOptimizer"] = healthy()
    told["float32 and bfloat16 need no scaling"] = example("float32"), example("bfloat16")
    forward = Operation(name="backbone/MatMul", type="MatMul", outputs=(("float16", (8, 8)),))
    head = Operation(name="gradient_tape/head/MatMul", type="MatMul", outputs=(("float32", (8,)),))
    told["a frozen backbone in float16"] = check(Program((forward, head), settings=RunSettings(optimizer="SGD")))
    for kind in ("IsFinite", "IsNan", "CheckNumerics"):
        told[f"a script that checks for infinities may scale the loss: {kind}"] = example(also=kind)
    told["an unknown optimizer"] = example(optimizer=None)
    told["a graph without gradients"] = example(name="model/dense/MatMul")


SCRIPT = """
import keras, numpy as np, tensorflow as tf
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01))
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x, training=True) ** 2)
        loss = optimizer.scale_loss(loss)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
for _ in range(6):
    step(np.ones((4, 8), "float32"))
"""


def recorded(folder: Path) -> Mapping[str, Any]:
    """Run the script under tfdoctor, and return the program record."""
    script = folder / "train.py"
    script.write_text(SCRIPT, "utf-8")
    options = ["--no-report", "-q", "--sample-every", "0", "--out", str(folder / "run")]
    quiet = os.environ | {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "tfdoctor", "profile", *options, str(script)]
    subprocess.run(command, check=True, env=quiet, capture_output=True)
    with gzip.open(folder / "run" / "program.json.gz", "rt", encoding="utf-8") as file:
        return dict(json.load(file))


@pytest.mark.tensorflow
def test_a_custom_loop_is_judged_by_its_optimizer(tmp_path: Path) -> None:
    pytest.importorskip("keras", minversion="3")
    program = chart(trace(), recording(recorded(tmp_path))).fact(Program)
    assert isinstance(check(program), Healthy)

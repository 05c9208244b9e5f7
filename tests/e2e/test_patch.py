"""Real TensorFlow runs what the edits make of a script; and a whole run of it: record, report, apply, run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.edits.editing import POLICY, SEVERAL, git_apply
from tests.edits.recorded import finding, recorded, remedy
from tfdoctor.edits import edited

pytestmark = pytest.mark.tensorflow

FIT = """\
import keras
import numpy as np
import tensorflow as tf

x = np.random.default_rng(1).random((64, 4), dtype="float32")
np.savetxt("rows.csv", x)
files = tf.data.Dataset.from_tensors("rows.csv").repeat(2)
rows = files.interleave(tf.data.TextLineDataset, cycle_length=2)
rows = rows.map(lambda line: tf.strings.to_number(tf.strings.split(line), tf.float32))
rows = rows.map(lambda row: (tf.ensure_shape(row, (4,)), row[0]))
batches = rows.batch(20)
options = tf.data.Options()
options.autotune.enabled = False
batches = batches.with_options(options)

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("sgd", "mse", run_eagerly=True)
model.fit(batches, verbose=0)
print(model.compute_dtype, model.outputs[0].dtype, model.run_eagerly, model.steps_per_execution)
print(batches.element_spec[0].shape, options.autotune.enabled)
"""

ASKED = [
    ("parallel-interleave", "interleave", ""), ("parallel-map", "to_number", ""), ("cache", "row[0]", ""),
    ("parallel-batch", "batch(20)", ""), ("drop-remainder", "batch(20)", ""),
    ("autotune-on", "with_options", ""), ("prefetch", "with_options", ""),
    ("mixed-precision", "Sequential", POLICY), ("run-eagerly-off", "compile", ""),
    ("steps-per-execution", "compile", SEVERAL),
]  # fmt: skip

LOOP = """\
import tensorflow as tf

w = tf.Variable(2.0)


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = (w * x) ** 2
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss


print(float(step(tf.constant(1.0))), step._jit_compile)
"""

EAGER = """\
import keras
import numpy as np

x = np.random.default_rng(2).random((4000, 16), dtype="float32")
model = keras.Sequential([keras.Input((16,)), *(keras.layers.Dense(32) for _ in range(6))])
model.compile("sgd", "mse", run_eagerly=True)
model.fit(x, x[:, :1], batch_size=32, verbose=0)
print(model.run_eagerly)
"""


def run(folder: Path, *command: str) -> str:
    quiet = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    arguments = [sys.executable, *command]
    env = os.environ | quiet
    done = subprocess.run(
        arguments, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def patched(folder: Path, text: str, asked: list[tuple[str, str, str]]) -> str:
    """Apply these edits, each to the first line with its mark, by git; return what the script prints then."""
    (folder / "train.py").write_text(text)
    lines = text.splitlines()
    found = []
    for trial, mark, code in asked:
        line = 1 + next(at for at, one in enumerate(lines) if mark in one)
        found.append(finding(trial, remedy(trial, "train.py", line, code)))
    results, patch = edited(recorded(folder, ["train.py"]), found, None)
    assert [edit.missing for result in results for edit in result.edits] == [""] * len(asked)
    git_apply(patch, folder)
    return run(folder, "train.py")


def test_a_script_with_all_edits_of_fit_runs(tmp_path: Path) -> None:
    assert patched(tmp_path, FIT, ASKED).splitlines() == [
        "bfloat16 float32 False 16",
        "(20, 4) None",
    ]


def test_a_compiled_loop_runs(tmp_path: Path) -> None:
    assert patched(tmp_path, LOOP, [("jit-compile", "@tf.function", "")]) == "4.0 True\n"


def test_a_compiled_model_runs(tmp_path: Path) -> None:
    text = EAGER.replace("run_eagerly=True", 'weighted_metrics=["mae"]')
    text = text.replace("model.run_eagerly", "model.jit_compile")
    assert patched(tmp_path, text, [("jit-compile", "compile", "")]) == "True\n"


def test_record_report_apply_and_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EAGER)
    run(tmp_path, "-m", "tfdoctor", "profile", "--format", "json", "--out", "recording", "train.py")
    run(tmp_path, "-m", "tfdoctor", "report", "recording", "--patch", "fixes.diff")

    git_apply((tmp_path / "fixes.diff").read_bytes(), tmp_path)
    assert (tmp_path / "train.py").read_text() == EAGER.replace("eagerly=True", "eagerly=False")
    assert run(tmp_path, "train.py") == "False\n"

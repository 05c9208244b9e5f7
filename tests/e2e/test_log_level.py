"""The profiler's own messages do not stand in the script's output; its other messages do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import sys
import keras, numpy as np, tensorflow as tf

class Says(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print(f"after {batch}", file=sys.stderr)

x = np.zeros((400, 4), dtype="float32")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, x[:, :1], batch_size=8, epochs=1, verbose=1, callbacks=[Says()])

logdir = sys.argv[1]
tf.profiler.experimental.start(logdir)  # after our window: the user's own profiler says what it says
tf.profiler.experimental.stop()
"""


def test_a_progress_bar_is_not_interrupted_by_the_profiler(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    words = ["profile", "--no-report", "--out", str(tmp_path / "out"), "train.py", str(tmp_path / "own")]
    done = subprocess.run(
        [sys.executable, "-m", "tfdoctor", *words],
        cwd=tmp_path,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "traced 20 steps" in done.stderr
    ours, own = done.stderr.split("after 49\n")
    assert "Profiler session" not in ours
    assert "XSpace" not in ours
    assert [f"after {batch}\n" in done.stderr for batch in range(49)] == [True] * 49
    assert "Profiler session started" in own, "the level is the script's own again"
    assert (tmp_path / "out" / "plugins").is_dir()

"""The code of the how-to pages does what they say, in a real TensorFlow."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture.running import environment
from tfdoctor.rules.operations import unfused_batch_norm

pytestmark = pytest.mark.tensorflow

PAGES = Path(__file__).parents[2] / "docs" / "how-to"

BEFORE = {
    "speed-up-an-input-pipeline": "",
    "choose-shapes": "",
    "mixed-precision": "import tensorflow as tf\nloss_function = keras.losses.SparseCategoricalCrossentropy()\n",
}
"""What the pages take as given, behind their first import."""

AFTER = {
    "speed-up-an-input-pipeline": """
import os, tempfile
folder = tempfile.mkdtemp()
path = os.path.join(folder, "one.jpg")
tf.io.write_file(path, tf.io.encode_jpeg(tf.zeros((20, 30, 3), tf.uint8)))
(images, labels), *rest = batches([path] * 9, list(range(9)), 4)
assert images.shape == (4, 224, 224, 3), images.shape
assert len(rest) == 1, len(rest)
""",
    "mixed-precision": """
assert [layer.compute_dtype for layer in model.layers] == ["bfloat16", "float32"]
model.layers[-1].activation = keras.activations.softmax
x, y = tf.random.stateless_uniform([64, 784], [1, 2]), tf.range(64) % 10
losses = [float(step(x, y)) for _ in range(30)]
assert losses[-1] < losses[0] - 0.5, losses
assert float(optimizer.dynamic_scale) > 1.0
""",
    "choose-shapes": """
found = tf.nn.softmax(without_padding(tf.zeros([2, 8]), 5))
assert found.numpy().round(6).tolist() == tf.constant([[0.2] * 5 + [0.0] * 3] * 2).numpy().round(6).tolist()
""",
}


NORM = f"""
import keras, tensorflow as tf
{unfused_batch_norm.CODE["drop-in"]}

keras.utils.set_random_seed(1)
layers = [keras.Input([16, 16, 3]), keras.layers.Conv2D(16, 3), keras.layers.BatchNormalization()]
model = keras.Sequential([*layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(2)])
{unfused_batch_norm.CODE["clone"]}
x, y = tf.random.stateless_normal([32, 16, 16, 3], [1, 2]), tf.random.stateless_normal([32, 2], [3, 4])
losses = []
for one in (model, clone):
    one.compile("adam", "mse")
    losses.append(one.fit(x, y, epochs=5, batch_size=32, verbose=0).history["loss"])
assert type(clone.layers[1]).__name__ == "FusedBatchNormalization"
for a, b in zip(*losses):
    assert abs(a - b) < 1e-3 * a, losses
tf.debugging.assert_near(model.layers[1].moving_mean, clone.layers[1].moving_mean, 1e-3, 1e-3)
"""
"""The batch normalization that a rule advises trains like the usual one."""


def code_of(page: str) -> str:
    """Return a page's blocks of code as one program, with what they take as given and what they do."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^( *)```python\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL)
    first, *more = [re.sub(rf"^{indent}", "", code, flags=re.MULTILINE) for indent, code in found]
    imports, *rest = re.split(r"(?<=\n)\n", first, maxsplit=1)
    return "\n".join([imports, BEFORE[page], *rest, *more, AFTER[page]])


RUN = """
import json, sys, traceback
for name, text in json.load(sys.stdin).items():
    try:
        exec(compile(text, name, "exec"), {"__name__": name})
    except Exception:
        print(name, traceback.format_exc())
"""


def test_the_code_of_each_page_and_the_advised_layer_do_what_they_say() -> None:
    """One process: the page about types comes last, because it sets those of all layers."""
    programs = {"unfused-batch-norm": NORM, **{page: code_of(page) for page in BEFORE}}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(programs),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr

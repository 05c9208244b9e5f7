"""Reads a dataset, trains a small model over another one, and says in the middle which threads it has.

Arguments: "xla" compiles the step with XLA, "sets" makes the program choose its settings itself.
"""

import os
import sys
from collections import Counter
from pathlib import Path

if "sets" in sys.argv:
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"

import tensorflow as tf

if "sets" in sys.argv:
    tf.config.threading.set_inter_op_parallelism_threads(2)

weights = tf.Variable(tf.ones((32, 8)))
data = tf.data.Dataset.from_tensor_slices(tf.ones((512, 32))).map(lambda x: x + 1.0).batch(4)

for _ in tf.data.Dataset.range(100).batch(7):
    pass


@tf.function(jit_compile="xla" in sys.argv)
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.relu(tf.matmul(x, weights)) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


def say():
    """Print the names of the threads that there are, and how many have each."""
    names = Counter(path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm"))
    for name, number in sorted(names.items()):
        print("threads", name, number)


for number, x in enumerate(data):
    step(x)
    if number == 100:
        say()

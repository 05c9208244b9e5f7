"""Nightly churn model. The job may be preempted, so progress is kept in a state file."""
import json
import os
import tempfile
import numpy as np
import tensorflow as tf

WORK = tempfile.mkdtemp()
STATE = os.path.join(WORK, "state.json")
BATCH, FEATURES, SEGMENTS = 256, 120, 12
rng = np.random.default_rng(0)
x = rng.normal(size=(23040, FEATURES)).astype("float32")
w = rng.normal(size=FEATURES) / 8
y = (x @ w + rng.normal(size=len(x)) > 0.5).astype("float32")
segment = rng.integers(0, SEGMENTS, len(x)).astype("int32")

model = tf.keras.Sequential([
    tf.keras.Input((FEATURES,)),
    tf.keras.layers.Dense(256, activation="relu"),
    tf.keras.layers.Dropout(0.2),
    tf.keras.layers.Dense(128, activation="relu"),
    tf.keras.layers.Dense(1),
])
opt = tf.keras.optimizers.Adam(1e-3)
opt.build(model.trainable_variables)


@tf.function
def train_step(xb, yb, seg):
    with tf.GradientTape() as tape:
        logit = model(xb, training=True)[:, 0]
        each = tf.nn.sigmoid_cross_entropy_with_logits(labels=yb, logits=logit)
        loss = tf.reduce_mean(each)
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    return loss, tf.math.unsorted_segment_mean(each, seg, SEGMENTS)


log = open(STATE + "l", "a")
state = {"epoch": 0, "step": 0, "history": []}
for epoch in range(3):
    state["epoch"] = epoch
    for start in range(0, len(x), BATCH):
        sl = slice(start, start + BATCH)
        loss, per_segment = train_step(tf.constant(x[sl]), tf.constant(y[sl]), tf.constant(segment[sl]))
        state["step"] += 1
        row = {"step": state["step"], "loss": float(loss), "segments": [float(v) for v in per_segment.numpy()]}
        state["history"].append(row)
        log.write(json.dumps({"epoch": epoch, **row}) + "\n")
        log.flush()
    print("epoch", epoch, "loss", round(np.mean([h["loss"] for h in state["history"][-100:]]), 4))

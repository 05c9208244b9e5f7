"""Click model on exported bid logs (TFRecord, features as the exporter writes them)."""
import os
import tempfile
import numpy as np
import tensorflow as tf

DENSE, BATCH, ROWS = 220, 256, 12000
folder = tempfile.mkdtemp()
path = os.path.join(folder, "bids.tfrecord")
rng = np.random.default_rng(0)

x = rng.normal(size=(ROWS, DENSE)).astype("float32")
site = rng.integers(0, 500, ROWS)
y = (x[:, :5].sum(1) + 0.01 * (site % 50) > 0.3).astype("int64")


def example(row, s, label):
    feature = {
        "dense": tf.train.Feature(bytes_list=tf.train.BytesList(value=[",".join("%.4f" % v for v in row).encode()])),
        "site": tf.train.Feature(int64_list=tf.train.Int64List(value=[s])),
        "click": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


with tf.io.TFRecordWriter(path) as out:
    for k in range(ROWS // 4):
        out.write(example(x[k], site[k], y[k]))

spec = {
    "dense": tf.io.FixedLenFeature([], tf.string),
    "site": tf.io.FixedLenFeature([], tf.int64),
    "click": tf.io.FixedLenFeature([], tf.int64),
}


def parse(batch):
    f = tf.io.parse_example(batch, spec)
    parts = tf.strings.split(f["dense"], ",").to_tensor()
    dense = tf.ensure_shape(tf.strings.to_number(parts), [None, DENSE])
    return {"dense": dense, "site": f["site"]}, f["click"]


ds = (tf.data.TFRecordDataset(path).shuffle(5000).repeat().batch(BATCH)
      .map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE))

dense = tf.keras.Input((DENSE,), name="dense")
sid = tf.keras.Input((), dtype="int64", name="site")
h = tf.keras.layers.Concatenate()([dense, tf.keras.layers.Embedding(500, 16)(sid)])
h = tf.keras.layers.Dense(64, activation="relu", name="hidden1")(h)
h = tf.keras.layers.Dense(32, activation="relu", name="hidden2")(h)
model = tf.keras.Model({"dense": dense, "site": sid}, tf.keras.layers.Dense(1, activation="sigmoid", name="ctr")(h))
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(ds, steps_per_epoch=60, epochs=3, verbose=2)

"""Click-through-rate model on 40 categorical columns."""
import keras
import numpy as np
from keras import layers, ops

COLUMNS, DIM, BATCH, ROWS = 40, 8, 256, 38400
rng = np.random.default_rng(0)
sizes = rng.integers(20, 500, COLUMNS)
table = np.stack([rng.integers(0, n, ROWS) for n in sizes], 1).astype("int32")
clicks = (table[:, 0] % 3 + table[:, 1] % 2 > 2).astype("float32")

inputs = keras.Input((COLUMNS,), dtype="int32")
offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype("int32")
embedded = layers.Embedding(int(sizes.sum()), DIM, name="cats")(inputs + offsets)
deep = layers.Reshape((COLUMNS * DIM,))(embedded)
for width in (128, 64):
    deep = layers.Dense(width, activation="relu")(deep)
    deep = layers.Dropout(0.1)(deep)
outputs = layers.Dense(1, activation="sigmoid")(deep)

model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss="binary_crossentropy",
    metrics=["accuracy"],
)
model.fit(table, clicks, batch_size=BATCH, epochs=1, verbose=2)

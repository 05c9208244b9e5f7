"""`Model.fit` of a recommender: two embeddings and their product, on a dataset."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
users, films = rng.integers(0, 500, 12800), rng.integers(0, 300, 12800)
ratings = rng.normal(3, 1, 12800).astype("float32")

inputs = {"user": users, "film": films}
data = tf.data.Dataset.from_tensor_slices((inputs, ratings)).shuffle(2000, seed=0).batch(32)

user, film = (
    keras.Input((), name="user", dtype="int32"),
    keras.Input((), name="film", dtype="int32"),
)
product = keras.layers.Dot(1)(
    [keras.layers.Embedding(500, 16)(user), keras.layers.Embedding(300, 16)(film)]
)
model = keras.Model({"user": user, "film": film}, product)
model.compile("adam", "mse")
model.fit(data.prefetch(2), epochs=1, verbose=0)

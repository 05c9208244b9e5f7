"""A recommender user: a tiny model, one call from Python for each tiny batch."""

import keras
import numpy as np

from stopwatch import tick

STEPS = 1000

keras.utils.set_random_seed(23)
rng = np.random.default_rng(23)
users, items = rng.integers(0, 2000, (2, 32 * STEPS))
ratings = ((users + items) % 5).astype("float32")

user, item = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
vectors = [keras.layers.Embedding(2000, 16)(one) for one in (user, item)]
model = keras.Model([user, item], keras.layers.Dot(axes=1)(vectors))
model.compile("sgd", "mse")
watch = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: tick(STEPS))
model.fit([users, items], ratings, batch_size=32, epochs=10, verbose=2, callbacks=[watch])

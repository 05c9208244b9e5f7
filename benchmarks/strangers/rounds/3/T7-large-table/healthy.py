"""Two-tower retrieval on frozen item vectors."""
import keras
import numpy as np
from keras import layers, ops

ITEMS, USERS, DIM = 600000, 4000, 32
rng = np.random.default_rng(0)
history = rng.integers(0, ITEMS, (25600, 8))
user = rng.integers(0, USERS, (25600, 1))
candidate = rng.integers(0, ITEMS, (25600, 1))
clicked = rng.integers(0, 2, 25600).astype("float32")

item_table = layers.Embedding(ITEMS, DIM, trainable=False, name="items")
user_table = layers.Embedding(USERS, DIM, name="users")

past = keras.Input((8,), dtype="int32")
who = keras.Input((1,), dtype="int32")
what = keras.Input((1,), dtype="int32")
vectors = item_table(layers.Concatenate()([past, what]))
profile = layers.GlobalAveragePooling1D()(vectors[:, :-1])
query = layers.Concatenate()([profile, layers.Flatten()(user_table(who))])
query = layers.Dense(768, activation="relu")(query)
query = layers.Dense(768, activation="relu")(query)
query = layers.Dense(DIM)(query)
item = layers.Dense(DIM)(layers.Dense(768, activation="relu")(vectors[:, -1]))
score = layers.Activation("sigmoid")(ops.sum(query * item, axis=-1))

model = keras.Model([past, who, what], score)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss="binary_crossentropy")
model.fit([history, user, candidate], clicked, batch_size=256, epochs=1, verbose=2)

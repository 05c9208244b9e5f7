# NER on annotated sentences
import numpy as np
from keras import Input, Model
from keras.layers import Conv1D, Dense, Embedding, SpatialDropout1D, TimeDistributed

max_len = 75
n_words = 6000
n_tags = 17
rng = np.random.default_rng(1)
X = rng.integers(1, n_words, (2560, max_len))
y = rng.integers(0, n_tags, (2560, max_len))

inp = Input(shape=(max_len,))
x = Embedding(n_words, 50)(inp)
x = SpatialDropout1D(0.1)(x)
x = Conv1D(96, 3, padding="same", activation="relu")(x)
x = Conv1D(96, 3, padding="same", activation="relu")(x)
x = TimeDistributed(Dense(64, activation="relu"))(x)
out = TimeDistributed(Dense(n_tags, activation="softmax"))(x)
model = Model(inp, out)

model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(X, y, batch_size=32, epochs=1, verbose=2)

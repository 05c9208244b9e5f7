import resource
import numpy as np
import tensorflow as tf
from tensorflow.keras.utils import to_categorical

# this box is shared: never take more than 16 GiB of address space
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))

VOCAB = 20000
SEQ = 12


def corpus(n_tokens):
    rng = np.random.default_rng(2)
    rank = np.arange(1, VOCAB - 1)
    p = 1.0 / rank
    words = rng.choice(VOCAB - 2, size=n_tokens, p=p / p.sum()) + 2
    words[1::2] = (words[0::2][: len(words[1::2])] * 7) % (VOCAB - 2) + 2
    return [f"w{w}" for w in words]


def index_words(tokens):
    table = {}
    ids = np.empty(len(tokens), "int32")
    for i, t in enumerate(tokens):
        ids[i] = table.setdefault(t, len(table) + 1)
    return ids, len(table) + 1


tokens = corpus(5_000_000)
ids, n_words = index_words(tokens)
print("tokens", len(ids), "different words", n_words)

windows = np.lib.stride_tricks.sliding_window_view(ids, SEQ + 1)
X = np.ascontiguousarray(windows[:, :SEQ])
y = windows[:, SEQ].copy()

model = tf.keras.Sequential([
    tf.keras.layers.Input((SEQ,)),
    tf.keras.layers.Embedding(n_words, 32),
    tf.keras.layers.GRU(32),
    tf.keras.layers.Dense(n_words, activation="softmax"),
])
model.compile(optimizer="adam", loss="categorical_crossentropy")
model.summary()

y = to_categorical(y, num_classes=n_words)
print("X", X.shape, "y", y.shape)

hist = model.fit(X, y, batch_size=128, epochs=3, steps_per_epoch=60, verbose=0)
print(hist.history["loss"])

import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import re
import random
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

MAXLEN = 60
VOCAB = 8000
random.seed(1)


def random_word():
    return "".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(random.randint(3, 9)))


class ReviewData:
    def __init__(self, n):
        pool = [random_word() for _ in range(9000)]
        good, bad = set(pool[:900]), set(pool[900:1800])
        self.texts, self.labels = [], []
        for _ in range(n):
            label = random.randint(0, 1)
            words = random.choices(pool, k=random.randint(30, 55))
            words += random.choices(pool[:900] if label else pool[900:1800], k=6)
            random.shuffle(words)
            self.texts.append(" ".join(words).capitalize() + "!")
            self.labels.append(label)

    def vocabulary(self):
        counts = {}
        for t in self.texts:
            for w in re.sub(r"[^a-z ]", "", t.lower()).split():
                counts[w] = counts.get(w, 0) + 1
        return sorted(counts, key=counts.get, reverse=True)[:VOCAB]

    def sequences(self, vocab):
        vec = layers.TextVectorization(standardize="lower_and_strip_punctuation",
                                       output_sequence_length=MAXLEN, vocabulary=vocab)
        ds = tf.data.Dataset.from_tensor_slices(self.texts).batch(1024).map(vec, num_parallel_calls=2)
        return np.concatenate([b.numpy() for b in ds]).astype("int32")


data = ReviewData(4500)
vocab = data.vocabulary()
x = data.sequences(vocab)
y = np.array(data.labels)
print(x.shape, "max id", x.max())

inp = layers.Input((MAXLEN,), dtype="int32")
h = layers.Embedding(VOCAB + 2, 32)(inp)
h = layers.Conv1D(64, 5, activation="relu")(h)
h = layers.GlobalMaxPooling1D()(h)
out = layers.Dense(1, activation="sigmoid")(h)
model = tf.keras.Model(inp, out)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
h = model.fit(x, y, batch_size=64, epochs=30, validation_split=0.2, verbose=0)
print("val acc", h.history["val_accuracy"][-1])

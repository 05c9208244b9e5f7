import phase_timer
import json
import os
import tempfile
import numpy as np
import tensorflow as tf
phase_timer._T('preparing')

QUEUES = ["billing", "login", "network", "hardware", "other"]
D = 300
rng = np.random.default_rng(11)
proto = (rng.random((len(QUEUES), D)) < 0.04).astype("float32")


def fake_tickets(n):
    q = rng.integers(0, len(QUEUES), n)
    bag = ((proto[q] * rng.random((n, D)) > 0.5) | (rng.random((n, D)) < 0.05)).astype("float32")
    return [{"id": i, "words": np.flatnonzero(b).tolist(), "queue": int(k)} for i, (b, k) in enumerate(zip(bag, q))]


def encode(ticket):
    v = np.zeros(D, "float32")
    v[ticket["words"]] = 1.0
    return v


train = fake_tickets(6000)
X = np.stack([encode(t) for t in train])
Y = np.array([t["queue"] for t in train])

phase_timer._T('building')
model = tf.keras.Sequential([
    tf.keras.layers.Input((D,)),
    tf.keras.layers.Dense(128, activation="relu"),
    tf.keras.layers.Dropout(0.4),
    tf.keras.layers.Dense(len(QUEUES), activation="softmax"),
])
model.compile(loss="sparse_categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
phase_timer._T('other')
model.fit(X, Y, epochs=15, batch_size=32, validation_split=0.1, verbose=0)

# ---- assign the tickets of today
phase_timer._T('prediction')
today = fake_tickets(450)
result = []
for t in today:
    p = model.predict(encode(t).reshape(1, D), verbose=0)[0]
    k = int(np.argmax(p))
    result.append({"id": t["id"], "queue": QUEUES[k], "p": float(p[k])})
phase_timer._T('saving')
out = os.path.join(tempfile.gettempdir(), "tickets_%d.json" % os.getpid())
with open(out, "w") as f:
    json.dump(result, f)
os.remove(out)
phase_timer._T('other')
right = np.mean([QUEUES[t["queue"]] == r["queue"] for t, r in zip(today, result)])
print("assigned", len(result), "tickets,", "%.1f %% right" % (100 * right))

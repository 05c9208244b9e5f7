import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

N_USERS, N_ITEMS, NEG = 1000, 2500, 4
EPOCHS = 6
POPULARITY = 1.0 / np.arange(5, N_ITEMS + 5) ** 0.5
POPULARITY /= POPULARITY.sum()


def interactions():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(N_USERS, 6))
    v = rng.normal(size=(N_ITEMS, 6))
    score = u @ v.T + rng.gumbel(size=(N_USERS, N_ITEMS))
    top = np.argsort(-score, axis=1)[:, :24]
    return {user: set(top[user].tolist()) for user in range(N_USERS)}


def make_epoch(likes):
    users, items, labels = [], [], []
    for user in likes:
        for item in likes[user]:
            users.append(user)
            items.append(item)
            labels.append(1)
            for _ in range(NEG):
                j = np.random.choice(N_ITEMS, p=POPULARITY)
                while j in likes[user]:
                    j = np.random.choice(N_ITEMS, p=POPULARITY)
                users.append(user)
                items.append(j)
                labels.append(0)
    perm = np.random.permutation(len(users))
    users = np.array(users)[perm]
    items = np.array(items)[perm]
    labels = np.array(labels)[perm]
    return tf.data.Dataset.from_tensor_slices(((users, items), labels)).batch(1024)


def ncf():
    u = keras.Input((), dtype="int32")
    i = keras.Input((), dtype="int32")
    eu = layers.Embedding(N_USERS, 16)(u)
    ei = layers.Embedding(N_ITEMS, 16)(i)
    h = layers.Concatenate()([eu, ei, layers.Multiply()([eu, ei])])
    h = layers.Dense(32, activation="relu")(h)
    model = keras.Model([u, i], layers.Dense(1, activation="sigmoid")(h))
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="binary_crossentropy")
    return model


def main():
    np.random.seed(3)
    likes = interactions()
    model = ncf()
    for epoch in range(EPOCHS):
        ds = make_epoch(likes)
        h = model.fit(ds, epochs=1, verbose=0)
        print("epoch", epoch, "loss", round(h.history["loss"][0], 4))


if __name__ == "__main__":
    main()

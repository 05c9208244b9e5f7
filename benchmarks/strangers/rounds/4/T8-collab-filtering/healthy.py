# Neural collaborative filtering (NeuMF) on implicit feedback, MovieLens-like made-up interactions.
import os
from time import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import numpy as np
import tensorflow as tf
from tensorflow.keras.layers import Concatenate, Dense, Embedding, Flatten, Input, Multiply
from tensorflow.keras.models import Model
from tensorflow.keras.optimizers import Adam

np.random.seed(10)
tf.random.set_seed(10)

NUM_USERS, NUM_ITEMS = 1500, 2000
MF_DIM = 8
LAYERS = [512, 512, 256, 128]
NUM_NEG = 4
BATCH_SIZE = 512
EPOCHS = 4


def make_interactions(per_user=6):
    taste_u = np.random.normal(size=(NUM_USERS, 5))
    taste_i = np.random.normal(size=(NUM_ITEMS, 5))
    scores = taste_u @ taste_i.T + np.random.gumbel(size=(NUM_USERS, NUM_ITEMS))
    top = np.argsort(-scores, axis=1)[:, : per_user + 1]
    train = {(u, i) for u in range(NUM_USERS) for i in top[u, 1:]}
    return train, top[:, 0]


def get_train_instances(train, num_negatives):
    user_input, item_input, labels = [], [], []
    for u, i in sorted(train):
        # positive instance
        user_input.append(u)
        item_input.append(i)
        labels.append(1)
        # negative instances
        for j in np.random.randint(NUM_ITEMS, size=num_negatives):
            while (u, j) in train:
                j = np.random.randint(NUM_ITEMS)
            user_input.append(u)
            item_input.append(j)
            labels.append(0)
    return user_input, item_input, labels


def get_model():
    user = Input(shape=(1,), dtype="int32", name="user_input")
    item = Input(shape=(1,), dtype="int32", name="item_input")
    mf_user = Flatten()(Embedding(NUM_USERS, MF_DIM, name="mf_user")(user))
    mf_item = Flatten()(Embedding(NUM_ITEMS, MF_DIM, name="mf_item")(item))
    mlp_user = Flatten()(Embedding(NUM_USERS, LAYERS[0] // 16, name="mlp_user")(user))
    mlp_item = Flatten()(Embedding(NUM_ITEMS, LAYERS[0] // 16, name="mlp_item")(item))
    mf_vector = Multiply()([mf_user, mf_item])
    mlp_vector = Concatenate()([mlp_user, mlp_item])
    for idx, units in enumerate(LAYERS):
        mlp_vector = Dense(units, activation="relu", name=f"layer{idx}")(mlp_vector)
    vector = Concatenate()([mf_vector, mlp_vector])
    prediction = Dense(1, activation="sigmoid", name="prediction")(vector)
    return Model([user, item], prediction)


def hit_ratio(model, train, heldout, users=100, k=10):
    hits = 0
    for u in range(users):
        candidates = [heldout[u]] + [j for j in np.random.randint(NUM_ITEMS, size=99) if (u, j) not in train]
        pair = [np.full((len(candidates), 1), u, "int32"), np.array(candidates, "int32")[:, None]]
        score = model(pair).numpy()[:, 0]
        hits += (score > score[0]).sum() < k
    return hits / users


if __name__ == "__main__":
    train, heldout = make_interactions()
    model = get_model()
    optimizer = Adam(1e-3)
    bce = tf.keras.losses.BinaryCrossentropy()

    @tf.function
    def train_on(users, items, labels):
        with tf.GradientTape() as tape:
            loss = bce(labels, model([users, items], training=True))
        grads = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(grads, model.trainable_weights))
        return loss

    for epoch in range(EPOCHS):
        t1 = time()
        user_input, item_input, labels = get_train_instances(train, NUM_NEG)
        users = np.array(user_input, "int32")[:, None]
        items = np.array(item_input, "int32")[:, None]
        labels = np.array(labels, "float32")[:, None]
        shuffled = np.random.permutation(len(labels))
        total = 0.0
        for begin in range(0, len(labels), BATCH_SIZE):
            chosen = shuffled[begin : begin + BATCH_SIZE]
            loss = train_on(users[chosen], items[chosen], labels[chosen])
            total += loss.numpy() * len(chosen)
        t2 = time()
        hr = hit_ratio(model, train, heldout)
        print(f"Iteration {epoch} [{t2 - t1:.1f} s]: HR = {hr:.4f}, loss = {total / len(labels):.4f} [{time() - t2:.1f} s]")

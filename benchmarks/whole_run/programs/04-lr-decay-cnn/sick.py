import argparse

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models


def conv_block(x, filters):
    shortcut = layers.Conv2D(filters, 1, padding="same")(x)
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    x = layers.Add()([x, shortcut])
    return layers.MaxPooling2D()(x)


def make_model(classes):
    inp = layers.Input((16, 16, 1))
    x = inp
    for f in (8, 16, 32, 32):
        x = conv_block(x, f)
    x = layers.Flatten()(x)
    return models.Model(inp, layers.Dense(classes, activation="softmax")(x))


def load(n, classes, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    x = rng.normal(0, 0.7, (n, 16, 16, 1)).astype("float32")
    for c in range(classes):
        x[y == c, c:c + 3, :, 0] += 1.0
    return x, y


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--decay", type=float, default=0.9)
    args = ap.parse_args()

    x_train, y_train = load(2048, 10, 0)
    x_val, y_val = load(512, 10, 1)
    model = make_model(10)

    for epoch in range(args.epochs):
        lr = args.lr * args.decay ** epoch
        model.compile(optimizer=tf.keras.optimizers.Adam(lr),
                      loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        h = model.fit(x_train, y_train, validation_data=(x_val, y_val),
                      batch_size=64, epochs=1, verbose=0)
        print("epoch", epoch, "lr %.5f" % lr, "loss %.4f" % h.history["loss"][0],
              "val_acc %.3f" % h.history["val_accuracy"][0])

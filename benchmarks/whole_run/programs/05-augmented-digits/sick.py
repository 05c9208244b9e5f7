import numpy as np
import tensorflow as tf

EPOCHS = 20
BATCH = 128
rng = np.random.default_rng(7)


def synth(n):
    y = rng.integers(0, 10, n)
    base = np.random.default_rng(99).random((10, 28, 28)).astype("float32")
    x = base[y] * 0.8 + rng.random((n, 28, 28)).astype("float32") * 0.4
    return x[..., None], y.astype("int64")


x_train, y_train = synth(12000)
x_test, y_test = synth(2000)


def augment(img):
    img = np.roll(img, rng.integers(-2, 3), axis=0)
    img = np.roll(img, rng.integers(-2, 3), axis=1)
    if rng.random() < 0.5:
        img = img * rng.uniform(0.7, 1.3)
    img = img + rng.normal(0, 0.05, img.shape)
    for _ in range(2):
        r, c = rng.integers(0, 24, 2)
        img[r:r + 4, c:c + 4] = 0
    return np.clip(img, 0, 1)


def epoch_dataset():
    images, labels = [], []
    for img, lab in zip(x_train, y_train):
        images.append(augment(img).astype("float32"))
        labels.append(lab)
    order = rng.permutation(len(images))
    images = [images[i] for i in order]
    labels = [labels[i] for i in order]
    return tf.data.Dataset.from_tensor_slices((np.array(images), np.array(labels))).batch(BATCH)


model = tf.keras.Sequential([
    tf.keras.layers.Input((28, 28, 1)),
    tf.keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
    tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(10),
])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])

for epoch in range(EPOCHS):
    ds = epoch_dataset()
    model.fit(ds, epochs=1, verbose=0)
    loss, acc = model.evaluate(x_test, y_test, batch_size=256, verbose=0)
    print(f"epoch {epoch} test loss {loss:.3f} acc {acc:.3f}")

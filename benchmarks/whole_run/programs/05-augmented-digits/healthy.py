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


def augment(img, lab):
    n = tf.shape(img)[0]
    img = tf.roll(img, tf.random.uniform((2,), -2, 3, tf.int32), axis=(1, 2))
    gain = tf.where(tf.random.uniform((n, 1, 1, 1)) < 0.5, tf.random.uniform((n, 1, 1, 1), 0.7, 1.3), 1.0)
    img = img * gain + tf.random.normal(tf.shape(img), 0.0, 0.05)
    for _ in range(2):
        corner = tf.random.uniform((n, 2), 0, 24, tf.int32)
        pos = tf.range(28)[None, :]
        rows = (pos >= corner[:, :1]) & (pos < corner[:, :1] + 4)
        cols = (pos >= corner[:, 1:]) & (pos < corner[:, 1:] + 4)
        hole = rows[:, :, None] & cols[:, None, :]
        img = tf.where(hole[..., None], 0.0, img)
    return tf.clip_by_value(img, 0.0, 1.0), lab


train_ds = (tf.data.Dataset.from_tensor_slices((x_train, y_train))
            .shuffle(len(x_train)).batch(BATCH)
            .map(augment, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2))

model = tf.keras.Sequential([
    tf.keras.layers.Input((28, 28, 1)),
    tf.keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
    tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(10),
])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])

hist = model.fit(train_ds, epochs=EPOCHS, validation_data=(x_test, y_test), validation_batch_size=256, verbose=0)
for epoch in range(EPOCHS):
    print(f"epoch {epoch} test loss {hist.history['val_loss'][epoch]:.3f} acc {hist.history['val_accuracy'][epoch]:.3f}")

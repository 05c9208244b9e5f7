"""A custom loop over a dataset: `for x, y in ds`, `@tf.function` train step, validation each epoch."""

import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(0)

x_train = tf.random.stateless_normal((3840, 28, 28, 1), seed=(0, 1))
y_train = tf.cast(tf.reduce_mean(x_train, axis=(1, 2, 3)) > 0, tf.int32)
x_test, y_test = x_train[:640], y_train[:640]

train_ds = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(1000, seed=2).batch(32)
test_ds = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(32)


class MyModel(tf.keras.Model):
    """Two convolutions and two dense layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = tf.keras.layers.Conv2D(32, 3, activation="relu")
        self.conv2 = tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu")
        self.flatten = tf.keras.layers.Flatten()
        self.d1 = tf.keras.layers.Dense(64, activation="relu")
        self.d2 = tf.keras.layers.Dense(2)

    def call(self, x):
        """Return the logits."""
        x = self.flatten(self.conv2(self.conv1(x)))
        return self.d2(self.d1(x))


model = MyModel()
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()
train_loss = tf.keras.metrics.Mean(name="train_loss")
train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
test_loss = tf.keras.metrics.Mean(name="test_loss")
test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")


@tf.function
def train_step(images, labels):
    """Take one step of gradient descent."""
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    train_loss(loss)
    train_accuracy(labels, predictions)


@tf.function
def test_step(images, labels):
    """Measure on a batch."""
    predictions = model(images, training=False)
    test_loss(loss_object(labels, predictions))
    test_accuracy(labels, predictions)


for epoch in range(2):
    for metric in (train_loss, train_accuracy, test_loss, test_accuracy):
        metric.reset_state()

    for images, labels in train_ds:
        tick()
        train_step(images, labels)

    for images, labels in test_ds:
        test_step(images, labels)

    print(
        f"Epoch {epoch + 1}, "
        f"Loss: {train_loss.result():0.3f}, "
        f"Accuracy: {train_accuracy.result() * 100:0.2f}, "
        f"Test Loss: {test_loss.result():0.3f}, "
        f"Test Accuracy: {test_accuracy.result() * 100:0.2f}"
    )

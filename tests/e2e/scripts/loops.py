"""Training loops in styles that show no `Model.fit` and no dataset."""

import sys

import numpy as np
import tensorflow as tf

FEATURES, HIDDEN = 8, 64


def batch():
    return np.random.default_rng(0).random((4, FEATURES), dtype="float32")


class Net:
    def __init__(self):
        shapes = [FEATURES, HIDDEN], [HIDDEN, 1]
        self.weights = [tf.Variable(tf.random.stateless_uniform(shape, [1, 2])) for shape in shapes]

    def step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.tanh(x @ self.weights[0]) @ self.weights[1]) ** 2)
        for weight, gradient in zip(self.weights, tape.gradient(loss, self.weights)):
            weight.assign_sub(0.001 * gradient)
        return loss


def repeated(steps=50):
    train = tf.function(Net().step)
    return [float(train(tf.constant(batch()))) for _ in range(steps)][-1]


def gradient_tape(steps=40):
    net = Net()
    return [float(net.step(tf.constant(batch()))) for _ in range(steps)][-1]


def gan():
    """Two models, each called once or twice an iteration."""
    first, second = Net(), Net()
    critic, generator = tf.function(first.step), tf.function(second.step)
    for _ in range(40):
        critic(tf.constant(batch()))
        critic(tf.constant(-batch()))
        loss = generator(tf.constant(batch()))
    return float(loss)


def in_graph():
    """A whole epoch in a tf.function, over and over."""
    net = Net()
    data = tf.data.Dataset.from_tensor_slices(np.tile(batch(), [200, 1])).batch(4)

    @tf.function
    def epoch():
        loss = 0.0
        for x in data:
            loss = net.step(x)
        return loss

    return [float(epoch()) for _ in range(12)][-1]


def session():
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.reset_default_graph()  # where it runs twice in a process
    x = tf.compat.v1.placeholder("float32", [None, FEATURES])
    weight = tf.compat.v1.get_variable("w", [FEATURES, 1], initializer=tf.compat.v1.ones_initializer())
    loss = tf.reduce_mean((x @ weight) ** 2)
    train = tf.compat.v1.train.AdamOptimizer().minimize(loss)
    with tf.compat.v1.Session() as run:
        run.run(tf.compat.v1.global_variables_initializer())
        for number in range(50):
            fetches = {"train": train, "loss": loss} if number % 5 else [train, loss]
            found = run.run(fetches, {x: batch()})
            run.run(loss, {x: batch()})  # evaluation is no step
    return float(found["loss"])


def keras_2():
    import tf_keras as keras  # noqa: PLC0415  # the others need it not

    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.layers.Dense(5, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse", steps_per_execution=int(sys.argv[2]))
    x = np.tile(batch(), [40, 1])
    history = model.fit(x, x[:, :1], batch_size=4, epochs=2, verbose=0, validation_split=0.2)
    return history.history["loss"][-1]


if __name__ == "__main__":
    print(globals()[sys.argv[1]](), flush=True)

"""TensorFlow 1: a graph, hooks of the user's own, and `MonitoredTrainingSession`."""

import numpy as np
import tensorflow.compat.v1 as tf

from stopwatch import tick

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)


class LossLogger(tf.train.SessionRunHook):
    """Prints the loss now and then."""

    def __init__(self, loss, every):
        self.loss, self.every, self.step = loss, every, 0

    def before_run(self, run_context):
        """Ask for the loss as well."""
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        """Print it."""
        if self.step % self.every == 0:
            print(f"step {self.step}: loss = {run_values.results:.5f}")
        self.step += 1


def dense(x, units, name, activation=None):
    """Return a dense layer by hand."""
    with tf.variable_scope(name):
        w = tf.get_variable("w", (x.shape[-1], units), initializer=tf.glorot_uniform_initializer(1))
        b = tf.get_variable("b", (units,), initializer=tf.zeros_initializer())
        y = tf.matmul(x, w) + b
        return activation(y) if activation else y


def input_fn():
    """Return the tensors of the next batch."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(4096, 128)).astype("float32")
    labels = (features[:, 0] * features[:, 1] > 0).astype("int32")
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    dataset = dataset.shuffle(4096, seed=2).repeat().batch(128)
    return tf.data.make_one_shot_iterator(dataset).get_next()


def main():
    """Build the graph and run it."""
    tf.set_random_seed(1)
    features, labels = input_fn()
    hidden = dense(features, 1024, "hidden1", tf.nn.relu)
    hidden = dense(hidden, 1024, "hidden2", tf.nn.relu)
    logits = dense(hidden, 2, "logits")
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    global_step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=global_step)

    hooks = [tf.train.StopAtStepHook(last_step=200), LossLogger(loss, 40)]
    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        while not session.should_stop():
            tick()
            session.run(train_op)
    print("done")


if __name__ == "__main__":
    main()

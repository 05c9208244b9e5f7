"""Two mirrored workers on this machine, the second of which waits for its input."""

import json
import os
import socket
import subprocess
import sys
import time

import tensorflow as tf

FEATURES, DELAY_S = 20, 0.1


def ports(count):
    """Return so many free ports, all different."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return [f"localhost:{port}" for port in found]


def delayed(x, y):
    def wait(batch):
        time.sleep(DELAY_S)
        return batch

    waited = tf.numpy_function(wait, [x], tf.float32)
    waited.set_shape(x.shape)
    return waited, y


def batches(slow):
    x = tf.random.stateless_uniform([320, FEATURES], [1, 2])
    y = tf.reduce_sum(x, axis=1, keepdims=True)
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(16)
    return data.map(delayed) if slow else data


def start(slow):
    """Start both workers, as a script that simulates a cluster does."""
    cluster = {"worker": ports(2)}
    workers = []
    for index in (0, 1):
        config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(config)}
        command = [sys.executable, __file__, "worker", "slow" if str(index) == slow else "even"]
        workers.append(subprocess.Popen(command, env=environment))
    return max(worker.wait() for worker in workers)


def worker(pace):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(tf.ones([FEATURES, 1]))

    def apply(distribution, variable, gradient):
        distribution.extended.update(
            variable, lambda v, g: v.assign_sub(0.001 * g), args=(gradient,)
        )

    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weight - y) ** 2)
        context = tf.distribute.get_replica_context()
        gradient = context.all_reduce("SUM", tape.gradient(loss, weight))
        context.merge_call(apply, args=(weight, gradient))
        return loss

    @tf.function
    def train(batch):
        return strategy.run(replica, args=batch)

    data = strategy.distribute_datasets_from_function(lambda _: batches(pace == "slow"))
    for number, batch in enumerate(data):
        train(batch)
        if number == 59:
            break
    return 0


if __name__ == "__main__":
    sys.exit(start(sys.argv[2]) if sys.argv[1] == "start" else worker(sys.argv[2]))

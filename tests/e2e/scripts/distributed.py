"""Training on several workers of this machine: mirrored (each a process), and by parameter servers."""

import json
import os
import socket
import subprocess
import sys
import time

if sys.argv[1] != "mirrored":  # which only starts others
    import tensorflow as tf

if budget := sys.modules.get("_tfdoctor_agent.process.budget"):
    budget.LEAST_S = budget.LONGEST_S = 60.0  # a busy machine starts the profiler slowly, even of a short run

FEATURES, DELAY_S, STEPS = 20, 0.1, 40


def ports(count):
    """Return so many free ports, all different."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    found = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return found


def batches(_context=None):
    x = tf.random.stateless_uniform([320, FEATURES], [1, 2])
    y = tf.reduce_sum(x, axis=1, keepdims=True)
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(16)


def delayed(x, y):
    waited = tf.numpy_function(lambda batch: time.sleep(DELAY_S) or batch, [x], tf.float32)
    waited.set_shape(x.shape)
    return waited, y


def mirrored():
    """Start both workers, as a script that simulates a cluster does; the named one waits for its input."""
    slow = sys.argv[2]
    cluster = {"worker": ports(2)}
    workers = []
    for index in (0, 1):
        config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(config)}
        command = [sys.executable, __file__, "worker", "slow" if str(index) == slow else "even"]
        workers.append(subprocess.Popen(command, env=environment))
    return max(worker.wait() for worker in workers)


def worker():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(tf.ones([FEATURES, 1]))

    def apply(distribution, variable, gradient):
        distribution.extended.update(variable, lambda v, g: v.assign_sub(0.001 * g), args=(gradient,))

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

    data = batches().map(delayed) if sys.argv[2] == "slow" else batches()
    for number, batch in enumerate(strategy.distribute_datasets_from_function(lambda _: data)):
        train(batch)
        if number == STEPS - 1:
            break
    return 0


def parameter_server():
    """A coordinator, one worker and one parameter server, all in this process."""
    one, two = ports(2)
    spec = tf.train.ClusterSpec({"worker": [one], "ps": [two]})
    for job in ("worker", "ps"):
        tf.distribute.Server(spec, job_name=job, task_index=0, protocol="grpc")
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weight = tf.Variable(tf.ones([FEATURES, 1]))

    @tf.function
    def datasets():
        return strategy.distribute_datasets_from_function(batches)

    @tf.function
    def train(iterator):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ weight - y) ** 2)
            weight.assign_sub(0.001 * tape.gradient(loss, weight))

        strategy.run(replica, args=next(iterator))

    iterator = iter(coordinator.create_per_worker_dataset(datasets))
    for _ in range(STEPS):
        coordinator.schedule(train, args=(iterator,))
    coordinator.join()
    print("joined", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(globals()[sys.argv[1]]())

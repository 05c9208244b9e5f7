"""Samples threads that come and go, while garbage is collected all the time: agent's folder, seconds."""

import ctypes
import faulthandler
import gc
import importlib
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

FOLDER, SECONDS = sys.argv[1], float(sys.argv[2])

OFTEN = 5  # new objects until the collector runs

THREAD = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def outer(count):
    """Run nested functions that let other threads run."""
    return sum(inner(number) for number in range(count))


def inner(number):
    """Make lists and a closure, and wait for a moment."""
    made = [number + more for more in range(5)]
    time.sleep(0)
    return len([held(one) for one in made])


def held(one):
    """Return what a closure holds."""

    def get():
        return one

    return get()


def collected(*_):
    """Run some Python within each collection."""
    for _ in range(3):
        counted[0] += 1


def foreign():
    """Start threads that Python did not start, as TensorFlow's that run a NumPy function."""

    @THREAD
    def body(_):
        outer(3)

    process, thread = ctypes.CDLL(None), ctypes.c_ulong()
    while not over.is_set():
        process.pthread_create(ctypes.byref(thread), None, body, None)
        process.pthread_join(thread, None)


def own():
    """Work in a thread that stays."""
    while not over.is_set():
        outer(10)


over, counted = threading.Event(), [0]
faulthandler.enable()
sys.path.append(str(Path(FOLDER).parent))
samples_of = importlib.import_module(f"{Path(FOLDER).name}.window.stack_samples")
sampler = samples_of.StackSampler(None, SimpleNamespace(code=None, call=None))  # of arguments of no call
training = SimpleNamespace(running=False, depth=0, function=None)  # of nothing
for target in (own, own, foreign, foreign, foreign):
    threading.Thread(target=target, daemon=True).start()
gc.callbacks.append(collected)
gc.set_threshold(OFTEN, 10, 10)
sys.setswitchinterval(0.0001)
until, samples = time.monotonic() + SECONDS, 0
while time.monotonic() < until:
    sampler.sample(0, training)
    samples += 1
    time.sleep(0.00005)
over.set()
print(samples)

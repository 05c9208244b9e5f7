"""Samples threads that come and go, while garbage is collected all the time: agent's folder, seconds."""

import ctypes
import faulthandler
import gc
import importlib.util
import sys
import threading
import time

FOLDER, SECONDS = sys.argv[1], float(sys.argv[2])

OFTEN = 5
"""New objects until the collector runs."""

THREAD = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Training:
    """A thread that trains nothing."""

    running, depth, function = False, 0, None


class Arguments:
    """Arguments of no call."""

    code = call = None


def load(name):
    """Return a module of the agent."""
    spec = importlib.util.spec_from_file_location(
        "agent", FOLDER + "/__init__.py", submodule_search_locations=[FOLDER]
    )
    sys.modules["agent"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["agent"])
    return importlib.import_module("agent." + name)


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
sampler = load("window.stack_samples").StackSampler(None, Arguments())
for target in (own, own, foreign, foreign, foreign):
    threading.Thread(target=target, daemon=True).start()
gc.callbacks.append(collected)
gc.set_threshold(OFTEN, 10, 10)
sys.setswitchinterval(0.0001)
until, samples = time.monotonic() + SECONDS, 0
while time.monotonic() < until:
    sampler.sample(0, Training())
    samples += 1
    time.sleep(0.00005)
over.set()
print(samples)

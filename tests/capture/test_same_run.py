"""A script that looks, or that replaces what it finds, meets nothing of ours; the account of its run stays true."""

from tests.capture.kit import *
from tests.capture.running import fake_tensorflow, profiled

SCRIPTS = {
    "doubles": """
import gc, io, json, linecache, os, sys, threading, time
from unittest import mock
now = time.monotonic
names = ["time.sleep", "time.time_ns", "time.perf_counter_ns", "time.monotonic", "time.thread_time",
    "builtins.open", "io.open", "os.replace", "os.listdir", "os.getpid", "os.unlink", "json.dumps", "json.dump",
    "threading.get_ident", "threading.Thread", "threading.Lock", "sys._current_frames"]
end = now() + 1.2
patches = [mock.patch(name) for name in names]
doubles = [patch.start() for patch in patches]
while now() < end: sum(range(1000))
for patch in patches: patch.stop()
print([name for name, double in zip(names, doubles) if double.call_count])
""",
    "stopped clock": """
import sys, time
now, kept = time.monotonic, []
fixed = {getattr(time, name): (2 * 10**18 if name.endswith("_ns") else 2e9) for name in
    ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")}
end = now() + 1.2
for module in list(sys.modules.values()):
    for name, value in list(getattr(module, "__dict__", {}).items()):
        if module.__name__ != "__main__" and type(value) is type(len) and value in fixed:
            kept.append((module, name, value))
            setattr(module, name, lambda value=fixed[value]: value)
while now() < end: sum(range(1000))
for module, name, value in kept: setattr(module, name, value)
print([])
""",
    "traced": """
import sys
seen = set()
def see(frame, *_):
    seen.add(frame.f_code.co_filename)
sys.settrace(see)
import tensorflow
sys.settrace(None)
print([name for name in seen if "tfdoctor" in name and not name.startswith("<")])
assert any("tfdoctor" in name for name in seen), "nothing of ours ran"
""",
    "closed files": """
import os, time
end = time.monotonic() + 0.8
os.closerange(3, 256)
files = [open(f"own{number}", "w+") for number in range(20)]
while time.monotonic() < end: sum(range(1000))
for file in files: file.seek(0)
print([text for file in files if (text := file.read())])
""",
    "threads": """
import os, sys, threading, time
time.sleep(0.3)
print([thread.name for thread in threading.enumerate() if thread is not threading.main_thread()])
assert sys.excepthook is sys.__excepthook__
""",
    "builtins": """
import inspect, os, pickle, traceback
class Launcher:
    spawn, leave, wait = os.posix_spawn, os._exit, os.waitpid
assert Launcher().wait(Launcher().spawn("/bin/true", ["true"], {}), 0)[1] == 0
functions = [os.posix_spawn, os.execve, os.putenv, os.unsetenv, os._exit]
found = [f for f in functions if not inspect.isbuiltin(f) or pickle.loads(pickle.dumps(f)) is not f]
try:
    Launcher().leave(None)
except TypeError as error:
    found += traceback.extract_tb(error.__traceback__)[1:]
assert os.execve in os.supports_fd
print(found, flush=True)
Launcher().leave(0)
""",
    "collector": """
import gc, time
gc.enable = gc.disable = lambda: None
end = time.monotonic() + 1
while time.monotonic() < end: sum(range(1000))
print([] if gc.isenabled() else "off")
""",
    "paths": """
import os.path, time
os.path.exists = lambda path: True
end = time.monotonic() + 1
while time.monotonic() < end: sum(range(1000))
print([])
""",
}


@each(*SCRIPTS.values(), ids=[*SCRIPTS])
def test_a_script_finds_nothing_of_ours(script: str, tmp_path: Path) -> None:
    fake_tensorflow(tmp_path)
    (tmp_path / "train.py").write_text(script)
    run = profiled(tmp_path / "train.py", tmp_path / "out", sample_every_ms=0)
    assert (run.code, run.stdout) == (0, "[]\n")
    assert run.stderr.count("\n") == 1  # tfdoctor's own
    (log,) = tmp_path.glob("out/**/run.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert 0 < max(line["end"] for line in lines if line["kind"] in ("bucket", "end")) < 60
    assert lines[-1]["kind"] == "end"

"""Takes: each window that was traced, in a folder of its own; the best one is the recording.

TensorFlow names what it writes by the second and overwrites, so two takes never share a folder.
"""

import os
import time

TRACES = os.path.join("plugins", "profile", "*", "*.xplane.pb")


IDLE_S = 10.0
"""A loop that has not stepped for so long, and for so many of its longest steps, was left."""

IDLE_STEPS = 10


class Take:
    """One traced window."""

    def __init__(self, out, number, source, warmup):
        self.out = out
        self.folder = os.path.join(out, f"take{number}")
        self.source = source  # None while a window by time has met no step
        self.warmup = warmup
        self.calls = 0
        self.stepped_at, self.longest = time.monotonic(), 0.0
        self.discarded = []  # numbers of markers that were no steps
        self.start = source.seen if source else 0
        self.record = {
            "warmup": 0,
            "steps": 0,
            "first_step": 0,
            "calls": 0,
            "source": source.name if source else "time",
            "profiler": "tfdoctor",
            "at": source.at if source else None,
            "started_unix_ns": time.time_ns(),
            "stopped_unix_ns": None,
            "contains_warmup": False,
            "stopped_by": "unfinished",
        }

    def begin(self, source, number):
        """The first traced step of a source is known."""
        self.source, self.start = source, number
        self.record.update(
            warmup=number,
            first_step=number,
            source=source.name,
            at=source.at,
            contains_warmup=number < self.warmup,
        )

    def stepped(self):
        """A traced call begins."""
        now = time.monotonic()
        if self.calls:
            self.longest = max(self.longest, now - self.stepped_at)
        self.stepped_at = now
        self.calls += 1

    def idle(self, now):
        """Say whether its loop seems to be over, without a word."""
        return now - self.stepped_at > max(IDLE_S, IDLE_STEPS * self.longest)

    def drop_last(self):
        """The end of the last step was not seen: what came after the loop is none of it."""
        if self.calls > 1:
            self.discarded.append(self.source.seen - 1 + self.source.discarded)

    def end(self, reached, reason, stopped_ns):
        """The window is closed at a step: nothing more comes."""
        self.record.update(
            steps=max(0, reached - self.start),
            calls=self.calls,
            stopped_by=reason,
            stopped_unix_ns=stopped_ns,
        )

    @property
    def good(self):
        """How many steps it has after the warm-up, and how many in all."""
        last = self.start + self.record["steps"]
        return max(0, last - max(self.start, self.warmup)), self.record["steps"]

    def traced(self):
        """Say whether the profiler left a trace."""
        return bool(_traces(self.folder))

    def keep(self):
        """Make this take's trace the recording's, instead of an earlier one."""
        import shutil

        final = os.path.join(self.out, "plugins")
        shutil.rmtree(final, ignore_errors=True)
        os.replace(os.path.join(self.folder, "plugins"), final)
        self.drop()

    def drop(self):
        """Remove the take's folder."""
        import shutil

        shutil.rmtree(self.folder, ignore_errors=True)

    def adopt(self, logdir, since):
        """Copy the newest trace of the user's own profiler, written since a time in seconds."""
        import shutil

        found = [path for path in _traces(logdir) if os.stat(path).st_mtime >= since]
        if not found:
            return
        newest = max(found, key=lambda path: os.stat(path).st_mtime)
        run = os.path.basename(os.path.dirname(newest))
        folder = os.path.join(self.folder, "plugins", "profile", run)
        os.makedirs(folder, exist_ok=True)
        shutil.copyfile(newest, os.path.join(folder, os.path.basename(newest)))


def _traces(folder):
    import glob

    return glob.glob(os.path.join(glob.escape(folder), TRACES))

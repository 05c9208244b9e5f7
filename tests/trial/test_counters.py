"""The energy of a trial's steps, by counters as Linux shows them, read while time passes."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.report import diagnoses
from tfdoctor.capture.sampler.rapl import RaplSampler
from tfdoctor.report.trials import notes, step
from tfdoctor.terms.kinds import EnergySource
from tfdoctor.trial.times import Loop, TrialTimes, times_of
from tfdoctor.trial.trial_run import EnergyCounters

WATTS = 50.0


@contextmanager
def package(root: Path) -> Iterator[None]:
    """A package of the processor that takes 50 W: its counter goes on in a thread."""
    zone = root / "intel-rapl:0"
    zone.mkdir(parents=True)
    ended, began = threading.Event(), time.monotonic()
    files = {"name": "package-0", "energy_uj": "0", "max_energy_range_uj": str(10**12)}
    for name, value in files.items():
        (zone / name).write_text(value)

    def count() -> None:
        while not ended.wait(0.01):
            new = zone / "new"
            new.write_text(str(int(WATTS * 1e6 * (time.monotonic() - began))))
            new.rename(zone / "energy_uj")

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def steps(count: int, first_ns: int, each_ns: int) -> TrialTimes:
    starts = first_ns + each_ns * np.arange(count + 1)
    sizes = np.ones(count + 1, dtype=np.int64)
    times, _ = times_of(Loop("keras-fit", starts / 1e6, sizes, warmup=1, fewest=5))
    assert times
    return times


def test_a_step_takes_the_power_for_its_time(tmp_path: Path) -> None:
    with package(tmp_path / "zones"):
        counters = EnergyCounters(tmp_path / "energy.jsonl", [RaplSampler(tmp_path / "zones")])
        counters.thread.start(os.getpid())
        time.sleep(1.0)
        first = time.perf_counter_ns()
        time.sleep(5.5)
        counters.thread.stop()
    found = counters.per_update(steps(54, first, 100_000_000))
    assert found == {EnergySource.CPU: pytest.approx(0.1 * WATTS, rel=0.1)}
    # Trap: two seconds of steps are few readings of a counter.
    assert counters.per_update(steps(20, first, 100_000_000)) == {}
    none = EnergyCounters(tmp_path / "none.jsonl", [RaplSampler(tmp_path / "no zones")])
    none.thread.start(os.getpid())
    none.thread.stop()
    assert none.per_update(steps(54, first, 100_000_000)) == {}


def test_the_report_tells_it_beside_the_time() -> None:
    made = diagnoses.tried()
    assert made.trials is not None
    first, *rest = made.trials.rows
    rows = (replace(first, energy_j={"GPU": 15.1}), *rest)
    told = replace(made.trials, rows=rows, as_is_energy_j={"GPU": 18.0})
    assert step(rows[0]).endswith("15.1 J (GPU)")
    assert "A step as it is took 18 J (GPU)" in " ".join(notes(told))
    assert " J" not in " ".join([*notes(made.trials), *map(step, made.trials.rows)])

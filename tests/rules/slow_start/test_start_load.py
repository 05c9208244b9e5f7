"""What other programs used of the cores while modules were imported, by the samples of that time alone."""

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import recording
from tests.rules.run_facts import divided_run
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.recording.run_log import RunLog, RunProcess
from tfdoctor.rules.slow_start.start_load import StartLoad
from tfdoctor.terms.kinds import DeviceKind, Phase

BEGAN = 1_000_000_000
PHASES = divided_run(20_000.0, {Phase.START: 500.0, Phase.IMPORTS: 2_500.0})


def sample(seconds: float, run: float | None, others: float) -> dict[str, Any]:
    host = {"other_cpu_pct": others} | ({} if run is None else {"run_cpu_pct": run})
    return {"unix_ns": BEGAN + round(seconds * 1e9), "host": host}


def measured(*samples: dict[str, Any], cores: float = 2.0) -> StartLoad:
    kept = replace(recording(samples=samples), run=RunLog(RunProcess(started_unix_ns=BEGAN), {}, {}, ()))
    return StartLoad.measure(kept, PHASES, Hardware(DeviceKind.CPU, "x", cores=cores))


def test_the_load_is_that_of_the_start() -> None:
    load = measured(
        sample(0.0, 0.0, 0.0), sample(1.0, 10.0, 180.0), sample(3.0, 30.0, 160.0), sample(3.1, 0.0, 0.0)
    )
    assert [load.run, load.others, load.usable] == pytest.approx([0.2, 1.7, 2.0])
    assert load.contended


def test_other_programs_delay_imports_where_no_core_is_free() -> None:
    assert measured(sample(1.0, 100.0, 51.0)).contended
    assert not measured(sample(1.0, 100.0, 50.0)).contended  # they use little
    assert not measured(sample(1.0, 90.0, 59.0)).contended  # half a core is free


def test_a_start_without_samples_is_unknown() -> None:
    for samples in ((), (sample(9.0, 1.0, 1.0),), (sample(1.0, None, 100.0),)):
        with pytest.raises(Unavailable, match="not sampled"):
            measured(*samples)

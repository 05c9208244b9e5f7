"""ThreadSetting: which of several limits counts, and what it is set on."""

from typing import Any

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Program, RunSettings
from tfdoctor.recording.manifest import HostMachine
from tfdoctor.rules.thread_limit.setting import LimitOrigin, ThreadSetting
from tfdoctor.terms.verdict import Location

LINE = ("/home/me/train.py", 8)


def measured(*, cores: int = 4, quota: float | None = None, variable: str = "", **more: Any) -> ThreadSetting:
    host = HostMachine("vm", "", (), cores, min(float(more.get("affinity") or cores), quota or cores))
    environment = {"TF_NUM_INTRAOP_THREADS": variable} if variable else {}
    of_run = recording(
        samples=[{"unix_ns": 1, "host": {"quota_cores": quota}}],
        manifest=manifest(host=host, environment=environment),
    )
    return ThreadSetting.measure(of_run, Program(settings=RunSettings(**more)), Framework())


def test_the_program_has_the_last_word_and_a_line() -> None:
    found = measured(intra_op_threads=1, intra_op_at=LINE, variable="2")
    assert found == ThreadSetting(1.0, 4.0, LimitOrigin.PROGRAM, Location("train.py", 8))


def test_a_program_that_takes_all_cores_hides_the_variable() -> None:
    assert measured(intra_op_threads=4, variable="1").origin is None


@pytest.mark.parametrize("set_by", [{"variable": "2"}, {"intra_op_variable": "2"}])
def test_the_variable_counts_where_the_program_sets_nothing(set_by: dict[str, Any]) -> None:
    found = measured(intra_op_threads=0, **set_by)
    assert (found.limit, found.offered, found.origin) == (2.0, 4.0, LimitOrigin.VARIABLE)


@pytest.mark.parametrize("variable", ["", "0", "many", "4", "8"])
def test_a_variable_that_limits_nothing_is_no_limit(variable: str) -> None:
    assert measured(variable=variable).origin is None


def test_an_affinity_keeps_cores_of_the_machine_from_the_run() -> None:
    found = measured(affinity=2)
    assert (found.limit, found.offered, found.origin) == (2.0, 4.0, LimitOrigin.AFFINITY)


def test_a_quota_is_compared_with_the_affinity() -> None:
    found = measured(quota=1.5, affinity=2)
    assert (found.limit, found.offered, found.origin) == (1.5, 2.0, LimitOrigin.QUOTA)


def test_as_many_threads_as_the_quota_has_cores_are_no_limit_of_their_own() -> None:
    assert measured(intra_op_threads=2, quota=2.0).origin is LimitOrigin.QUOTA


def test_an_unknown_machine_is_not_judged() -> None:
    with pytest.raises(Unavailable, match="number of cores"):
        ThreadSetting.measure(recording(), Program(), Framework())

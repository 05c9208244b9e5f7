"""When a run began and ended: clocks that are set, machines that sleep, and the kernel's OOM kills."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.capture import cgroup
from tfdoctor.capture.run_times import SMALLEST_JUMP_NS, Moment, begun, ended

S = 10**9


@pytest.mark.parametrize(
    ("mounts", "own", "files", "kills"),
    [
        ("cgroup2", "0::/job", {"job/memory.events": "low 0\noom 2\noom_kill 3\n"}, 3),
        ("cgroup2", "0::/job", {"memory.events": "oom_kill 1\noom_group_kill 0\n"}, 1),
        ("cgroup2", "0::/job", {"job/cpu.max": "max 100000"}, None),
        ("cgroup", "7:memory:/job", {"job/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"}, 4),
        ("cgroup", "7:memory:/job", {"job/memory.oom_control": "oom_kill_disable 0\n"}, None),
    ],
)
def test_oom_kills_of_both_kinds_of_cgroup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, own: str, files: dict[str, str], kills: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    options = "rw" if mounts == "cgroup2" else "rw,memory"
    (tmp_path / "mountinfo").write_text(f"30 23 0:26 / {tmp_path} rw - {mounts} cgroup {options}\n")
    (tmp_path / "cgroup").write_text(own + "\n")
    monkeypatch.setattr(cgroup, "SELF", tmp_path)
    assert cgroup.oom_kills() == kills
    assert Moment.now().oom_kills == kills


def test_a_system_without_cgroups_has_times_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "SELF", tmp_path)
    since = Moment.now()
    times = ended(begun(since, 7), since, Moment.now())
    assert times.oom_kills is None
    assert times.limit_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@given(lasted=st.integers(0, 10**6 * S), slept=st.integers(0, 10**6 * S), jump=st.integers(-(10**6) * S, 10**6 * S))
def test_sleep_and_a_clock_that_is_set_are_told_apart(lasted: int, slept: int, jump: int) -> None:
    since = Moment(5 * S, 10**18, S, 2)
    until = Moment(5 * S + lasted, 10**18 + lasted + slept + jump, S + slept, 2)
    times = ended(begun(since, 7), since, until)
    assert (times.ended_ns or 0) - times.started_ns == lasted
    assert abs(times.suspended_ns - slept) < 10**6
    assert times.oom_kills == 0
    hidden = slept - times.suspended_ns
    if abs(jump + hidden) >= SMALLEST_JUMP_NS:
        assert times.clock_jump_ns == jump + hidden
    else:
        assert times.clock_jump_ns == 0


@pytest.mark.parametrize(("before", "after", "kills"), [(2, 3, 1), (None, 3, None), (3, None, None), (3, 3, 0)])
def test_kills_count_from_the_begin_on(before: int | None, after: int | None, kills: int | None) -> None:
    since = Moment(0, 0, 0, before)
    assert ended(begun(since, 7), since, Moment(1, 1, 0, after)).oom_kills == kills

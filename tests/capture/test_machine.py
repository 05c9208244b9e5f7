"""What the machine, its clocks and its control groups say before and after a run."""

from tests.capture.kit import *
from tfdoctor.capture import machine
from tfdoctor.capture.manifest import SMALLEST_JUMP_NS, Moment, times_begun, times_ended

S, GIB = 10**9, 2**30
Files = dict[str, str]


def throttled() -> int | None:
    return machine.throttled_us(machine.statistics_file() or Path())


@cases(
    (machine.cpu_quota, "0::/job", {"job/cpu.max": "150000 100000"}, 1.5),
    (machine.cpu_quota, "0::/job", {"job/cpu.max": "max 100000", "cpu.max": "300000 100000"}, 3.0),
    (machine.cpu_quota, "0::/job", {"job/cpu.max": "max 100000"}, None),
    (machine.cpu_quota, "4:cpu,x:/job", {"job/cpu.cfs_quota_us": "50", "job/cpu.cfs_period_us": "100"}, 0.5),
    (machine.cpu_quota, "4:cpu,x:/job", {"job/cpu.cfs_quota_us": "-1", "job/cpu.cfs_period_us": "100"}, None),
    (machine.memory_limit, "0::/job", {"job/memory.max": f"{4 * GIB}"}, 4 * GIB),
    (machine.memory_limit, "0::/job", {"job/memory.max": "max", "memory.max": f"{GIB}"}, GIB),
    (machine.memory_limit, "0::/job", {"job/memory.max": "max"}, None),
    (machine.memory_limit, "7:memory:/job", {"job/memory.limit_in_bytes": f"{2 * GIB}"}, 2 * GIB),
    (machine.memory_limit, "7:memory:/job", {"job/memory.limit_in_bytes": "9223372036854771712"}, None),
    (machine.oom_kills, "0::/job", {"job/memory.events": "low 0\noom 2\noom_kill 3\n"}, 3),
    (machine.oom_kills, "0::/job", {"memory.events": "oom_kill 1\noom_group_kill 0\n"}, 1),
    (machine.oom_kills, "0::/job", {"job/cpu.max": "max 100000"}, None),
    (machine.oom_kills, "7:memory:/job", {"job/memory.oom_control": "under_oom 0\noom_kill 4\n"}, 4),
    (machine.oom_kills, "7:memory:/job", {"job/memory.oom_control": "oom_kill_disable 0\n"}, None),
    (lambda: Moment.now().oom_kills, "0::/job", {"job/memory.events": "oom_kill 3\n"}, 3),
    (throttled, "0::/job", {"job/cpu.stat": "usage_usec 5\nthrottled_usec 1234\n"}, 1234),
)
def test_both_versions_of_cgroups_are_read(
    read: Callable[[], float | None], own: str, files: Files, answer: object, tmp_path: Path, monkeypatch: Any
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    kind, options = ("cgroup2", "rw") if own.startswith("0") else ("cgroup", "rw," + own.split(":")[1])
    (tmp_path / "mountinfo").write_text(f"30 23 0:26 / {tmp_path} rw - {kind} cgroup {options}\n")
    (tmp_path / "cgroup").write_text(own + "\n")
    monkeypatch.setattr(machine, "SELF", tmp_path)
    assert read() == answer


def test_a_system_without_cgroups_has_times_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SELF", tmp_path)
    since = Moment.now()
    times = times_ended(times_begun(since, 7), since, Moment.now())
    assert times.oom_kills is None
    assert times.limit_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_the_machine_is_described() -> None:
    host = machine.host()
    assert 0 < host.cores_usable <= host.cores_logical
    assert (host.memory_bytes > 1 << 28, bool(host.cpu_model)) == (True, True)


@given(lasted=st.integers(0, 10**6 * S), slept=st.integers(0, 10**6 * S), jump=st.integers(-(10**6) * S, 10**6 * S))
def test_sleep_and_a_clock_that_is_set_are_told_apart(lasted: int, slept: int, jump: int) -> None:
    since = Moment(5 * S, 10**18, S, 2)
    until = Moment(5 * S + lasted, 10**18 + lasted + slept + jump, S + slept, 2)
    times = times_ended(times_begun(since, 7), since, until)
    assert (times.ended_ns or 0) - times.started_ns == lasted
    assert abs(times.suspended_ns - slept) < 10**6
    jumped = jump + slept - times.suspended_ns
    assert times.clock_jump_ns == (jumped if abs(jumped) >= SMALLEST_JUMP_NS else 0)


@cases((2, 3, 1), (None, 3, None), (3, None, None), (3, 3, 0))
def test_kills_count_from_the_begin_on(before: int | None, after: int | None, kills: int | None) -> None:
    since = Moment(0, 0, 0, before)
    assert times_ended(times_begun(since, 7), since, Moment(1, 1, 0, after)).oom_kills == kills

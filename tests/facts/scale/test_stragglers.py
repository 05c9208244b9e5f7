"""Which host holds up the others: hosts of known work, in any order, with and without chance."""

from tests.facts.kit import *
from tfdoctor.facts.scale.hosts import NS_PER_MS, clock_skew, compare, lower_bound, match
from tfdoctor.trace.names import COLLECTIVE_OPERATION

SEED = np.random.default_rng(7)


def host(parts: Mapping[str, list[float]], first: int = 10, **more: Any) -> HostSteps:
    """A host whose steps follow each other without a pause."""
    count = len(next(iter(parts.values())))
    whole = {str(part): tuple(parts.get(str(part), [0.0] * count)) for part in PARTS}
    ends = np.cumsum([sum(row) for row in zip(*whole.values(), strict=True)])
    moments = [round(end * NS_PER_MS) + 10**18 for end in (0.0, *ends)]
    given: dict[str, Any] = {
        "numbers": tuple(range(first, first + count)),
        "counted": True,
        "starts_ns": tuple(moments[:-1]),
        "ends_ns": tuple(moments[1:]),
        "machine": "vm",
        "boot_ns": 5,
    }
    return HostSteps(parts=whole, **(given | more))


def job(work: Mapping[str, Mapping[str, float]], steps: int = 20, noise: float = 0.5) -> dict[str, HostSteps]:
    """Hosts that train in step: each waits in a collective until the slowest has done its work."""
    own = {
        name: {part: [ms + SEED.uniform(0, noise) for _ in range(steps)] for part, ms in parts.items()}
        for name, parts in work.items()
    }
    totals = {name: np.sum(list(parts.values()), axis=0) for name, parts in own.items()}
    slowest = np.max(list(totals.values()), axis=0)
    waits = {name: (slowest - total + 1.0).tolist() for name, total in totals.items()}
    return {name: host({**own[name], "collective": waits[name]}) for name in work}


def compared(hosts: Mapping[str, HostSteps]) -> Comparison:
    return compare(hosts, match(hosts))


@each("input", "transfer", "host", "device", "between")
def test_the_slow_host_and_its_stage_are_named(stage: str) -> None:
    for count in (2, 3, 8, 64):
        work = {f"w{n}": {"input": 1.0, "host": 2.0, "device": 5.0} for n in range(count)}
        slow = f"w{count // 2}"
        work[slow] = work[slow] | {stage: work[slow].get(stage, 0.0) + 6.0}
        (lag,) = compared(job(work)).lags
        assert (lag.host, lag.stage, lag.holds_up) == (slow, stage, True)
        assert (lag.ms, lag.stage_ms, lag.waited_ms) == pytest.approx((6.0, 6.0, 6.0), rel=0.1)
        assert lag.gain_ms == pytest.approx(6.0, rel=0.2)
        assert lag.job_gain_ms <= min(lag.gain_ms, lag.waited_ms)
        assert lag.at_least_ms <= lag.ms


def test_two_slow_hosts_among_many_are_both_named_the_slowest_first() -> None:
    work = {f"w{n}": {"device": 5.0} for n in range(8)}
    work |= {"w3": {"device": 9.0}, "w6": {"device": 12.0}}
    assert [lag.host for lag in compared(job(work)).lags] == ["w6", "w3"]


@given(st.permutations(["a", "b", "c", "d"]), st.lists(st.floats(0.0, 20.0), min_size=4, max_size=4))
def test_the_order_of_the_hosts_does_not_matter(order: list[str], extra: list[float]) -> None:
    work = {name: {"device": 5.0 + more} for name, more in zip("abcd", extra, strict=True)}
    hosts = job(work)
    assert compared({name: hosts[name] for name in order}) == compared(hosts)
    assert match({name: hosts[name] for name in order}) == match(hosts)


@given(st.integers(2, 9), st.lists(st.floats(0.1, 50.0), min_size=20, max_size=20))
def test_identical_hosts_are_never_told_apart(count: int, times: list[float]) -> None:
    found = compared({f"w{n}": host({"device": times}) for n in range(count)})
    assert (found.lags, found.largest_ms) == ((), 0)


def test_chance_accuses_hardly_any_host_of_an_equal_job() -> None:
    rng = np.random.default_rng(3)
    accused = 0
    for _ in range(400):
        hosts = {f"w{n}": host({"device": rng.lognormal(2, 0.6, 20).tolist()}) for n in range(4)}
        accused += bool(compared(hosts).lags)
    assert accused <= 4  # ALPHA of 400; the spread must be exceeded besides


told = Told()
SPREAD = (11.0 + np.random.default_rng(4).choice([-0.5, 8.0], 100)).tolist()

told[lambda one, other: compared({"a": host(one), "b": host(other)})] = {
    "a host within the spread of the steps is no straggler": ({"device": [10.0] * 100}, {"device": SPREAD}),
    "nor is one with a hiccup": ({"device": [10.0] * 20}, {"device": [10.0] * 19 + [900.0]}),
    # as blocked in Python
    "others that wait where nobody sees it are no proof": (
        {"input": [20.0] * 20, "host": [1.0] * 20},
        {"input": [1.0] * 20, "host": [20.0] * 20},
    ),
    "who is not waited for lags but holds up no one": ({"device": [10.0] * 20}, {"device": [20.0] * 20}),
}


@cases((2, 8), (4, 9), (64, 13))
def test_with_too_few_steps_nothing_is_told(hosts: int, needed: int) -> None:
    work = {f"w{n}": {"device": 50.0 if n == 1 else 5.0} for n in range(hosts)}
    few, enough = compared(job(work, needed - 1)), compared(job(work, needed))
    assert (few.steps_needed, few.too_few, few.lags) == (needed, True, ())
    assert [lag.host for lag in enough.lags] == ["w1"]


def test_the_lower_bound_is_the_sign_tests() -> None:
    """Of 10 values the median exceeds the second smallest with 98.9 % (Conover, table A3)."""
    values = np.arange(10.0)
    assert lower_bound(values, 0.011) == 1.0
    assert lower_bound(values, 0.0107) == 0.0
    assert lower_bound(values, 0.0009) == float("-inf")


# Which steps are the same


def paired(*, counted: bool) -> object:
    """Two steps of the first host are before those of the second, by its numbers or by its clock."""
    first = host({"device": [10.0] * 6}, counted=counted)
    later = tuple(ns + 21 * NS_PER_MS for ns in first.starts_ns)
    return match(
        {
            "a": first,
            "b": replace(first, numbers=tuple(range(12, 18)) if counted else first.numbers, starts_ns=later),
        }
    )


BLIND: dict[str, Any] = {"counted": False, "starts_ns": (), "ends_ns": (), "clock_missing": "it has no clock"}
UNTOLD = {"a": host({"device": [1.0] * 6}, **BLIND), "b": host({"device": [1.0] * 4}, **BLIND)}

told.add("steps are matched by their number in the run", lambda: paired(counted=True))
told.add("steps are matched by the clock", lambda: paired(counted=False))
told.add("steps without either are matched by their order", lambda: match(UNTOLD))
told.add("and nothing is said of skew", lambda: clock_skew(UNTOLD, match(UNTOLD)))

# Clock skew

BASE = host({"device": [10.0] * 20})


def skewed(starts_ms: float, ends_ms: float, *others: HostSteps, **more: Any) -> ClockSkew:
    """A host whose clock shows so much more at its starts and ends than that of one beside it."""
    starts = tuple(ns + round(starts_ms * NS_PER_MS) for ns in BASE.starts_ns)
    ends = tuple(ns + round(ends_ms * NS_PER_MS) for ns in BASE.ends_ns)
    late = host({"device": [10.0] * 20}, **{"starts_ns": starts, "ends_ns": ends, **more})
    hosts = dict(zip("abc", (BASE, *others, late), strict=False))
    return clock_skew(hosts, match(hosts))


told.add("skew is the slowest minus the median host", lambda: skewed(3.0, 0.0, BASE))
told[lambda other: skewed(1.0, 0.0, **other)] = {
    "several machines are taken to agree": {"machine": "vm2"},
    "several boots": {"boot_ns": 10**9},
    "boots that are not known": {"boot_ns": None},
}
told.add("clocks that cannot agree tell nothing", lambda: skewed(0.0, 400.0))


# Waiting for other hosts on a CPU is told from computing.


@told
def a_reduction_over_hosts_is_no_computing() -> object:
    host = [markers(4, 10, 9)]
    for n, at in enumerate((0, 10, 20, 30)):
        host.append(line(f"tf_Compute/{n}", executor(at + 1, at + 8, n + 1), ("m/MatMul:MatMul", at + 1, at + 3)))
        host.append(line(f"collective_ops/{n}", ("r/Reduce:CollectiveReduceV2", at + 2, at + 8)))
    found = chart(trace(host))
    return found.fact(Breakdown).median, [row.type for row in found.fact(Operations).rows]


test_stragglers = told.test("stragglers")

test_operations_in_which_hosts_wait_are_known_by_type = Names(__file__, "names").test(
    lambda kind: bool(COLLECTIVE_OPERATION.fullmatch(kind))
)

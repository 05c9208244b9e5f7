"""What the file is told: buckets without gaps, bounded stacks, and a week of a run in little room."""

import itertools

from hypothesis import given, settings

from tests.capture.kit import *

account = agent.load("run.account")
clocks: Any = agent.load("run.clock")
kept: Any = agent.load("process.kept").time
"""The modules that look at the time."""
stacks = agent.load("run.stacks")
kinds = agent.load("run.kinds")

S = 1_000_000_000


class Time:
    def __init__(self) -> None:
        self.now = S

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Time:
    moment = Time()
    monkeypatch.setattr(kept, "perf_counter_ns", moment)
    return moment


def made(moment: Time) -> Any:
    clock = clocks.CallClock()
    clock.begin(threading.get_ident())
    return account.Buckets(clock, moment.now, moment.now - S // 5)


def train(clock: Any, moment: Time, steps: int, ms: float, line: int = 7) -> None:
    """Take steps at a line of a script's."""
    parent = clock.places.script
    for _ in range(steps):
        place = clock.places.of(kinds.STEP, ("/p/train.py", line), "repeated-call", parent)
        clock.entered[place] = clock.entered.get(place, 0) + 1
        clock.steps.begins(place, moment.now, 1, first=False, traced=False)
        clock.switch(place)
        moment.now += int(ms * 1e6)
        clock.steps.ends(moment.now)
        clock.switch(parent)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0.1, 400), st.booleans()), min_size=1, max_size=30))
def test_buckets_follow_one_another_and_lose_nothing(parts: list[tuple[int, float, bool]]) -> None:
    before, moment = kept.perf_counter_ns, Time()
    kept.perf_counter_ns = moment
    try:
        told = made(moment)
        clock, lines, calls = told.clock, [], 0
        for steps, ms, closes in parts:
            train(clock, moment, steps, ms)
            moment.now += 5_000_000
            calls += steps
            line = told.bucket(closes=closes)
            if closes:
                lines.append(line)
        clock.steps.passes_over()
        moment.now += 1
        lines.append(told.bucket(closes=True))
    finally:
        kept.perf_counter_ns = before
    assert lines[0]["start"] == 0.2
    assert lines[-1]["end"] == pytest.approx(told.seconds(moment.now))
    for one, following in itertools.pairwise(lines):
        assert one["end"] == following["start"]
    total = sum(ms for line in lines for ms in line["calls"].values())
    assert total == pytest.approx((lines[-1]["end"] - 0.2) * 1e3, abs=0.01 * len(lines))
    assert sum(step["calls"] for line in lines for step in line["steps"]) == calls
    assert sum(sum(line["entered"].values()) for line in lines) == calls
    for line in lines:
        width = (line["end"] - line["start"]) * 1e3
        assert sum(line["calls"].values()) == pytest.approx(width, abs=0.01)


def test_an_open_bucket_is_told_again_until_it_closes(moment: Time) -> None:
    told = made(moment)
    train(told.clock, moment, 3, 10)
    told.clock.steps.passes_over()
    first = told.bucket(closes=False)
    train(told.clock, moment, 2, 10)
    told.clock.steps.passes_over()
    second = told.bucket(closes=True)
    third = told.bucket(closes=True)
    assert (len(first["steps"][0]["each"]), len(second["steps"][0]["each"])) == (3, 5)
    assert third["steps"] == []
    assert third["calls"] == {}


def test_the_width_grows_with_the_run_and_with_the_file(moment: Time) -> None:
    told = made(moment)

    def width(age_s: float, size: int = 0) -> float:
        told.start = int(age_s * S)
        waited = 0.0
        while not told.is_full(told.start + int(waited * S), size):
            waited += 0.05
        return waited

    assert width(10) == pytest.approx(0.45, abs=0.1)
    assert width(4000) == pytest.approx(9, rel=0.1)
    assert width(4000, 16_000_000) == pytest.approx(36, rel=0.1)


def test_spans_that_are_not_over_are_told(moment: Time) -> None:
    told = made(moment)
    clock = told.clock
    clock.enter(kinds.FIT, "Model.fit", None)
    clock.epoch_begins(3)
    moment.now += 2 * S
    (span,) = told.open_spans(moment.now)
    assert (span["open"], span["number"], span["end"] - span["start"]) == (True, 3, 2)


# A week


def test_a_week_stays_below_64_mb(moment: Time, tmp_path: Path) -> None:
    """Of a program of many lines and calls: written every 100 s here, so that it takes seconds."""
    lines = 2000
    told, file = made(moment), account.LogFile(str(tmp_path))
    clock, number = told.clock, itertools.count()
    file.append([{"kind": "process", "pid": 1}])
    most_open = 0
    while told.seconds(moment.now) < 7 * 86_400:
        train(clock, moment, 20, 4_000)
        for _ in range(60):
            at = next(number) % lines
            stack = {"kind": "stack", "id": at, "call": 0, "at": ["/p/train.py", at]}
            if at not in told.stacks.ns and next(number) < 4 * lines:
                told.stacks.new.append(stack)
            told.stacks.ns[at] = told.stacks.ns.get(at, 0) + S // 3
            told.stacks.samples[at] = told.stacks.samples.get(at, 0) + 20
        entered = clock.enter(kinds.SAVE, "save", None)
        moment.now += 20 * S
        clock.leave(entered)
        closes = told.is_full(moment.now, file.size)
        bucket = told.bucket(closes=closes)
        most_open = max(most_open, len(json.dumps(bucket)))
        file.append([*told.told(), *([bucket] if closes else [])])
    assert file.size < 64_000_000
    assert most_open < 100_000  # what is written every second
    written = (tmp_path / "run.jsonl").read_text().splitlines()
    assert {"bucket", "call", "span", "stack"} <= {json.loads(line)["kind"] for line in written}


@pytest.mark.parametrize("largest", [1_000, 30_000, 500_000])
def test_a_week_of_the_largest_buckets_stays_below_64_mb(largest: int, moment: Time) -> None:
    """Whatever a program does: buckets get wider as they fill the file, and all else is counted in the bound."""
    told = made(moment)
    size = others = 9_000_000  # 20,000 spans, 8000 stacks, 5000 calls and traces, 2000 long steps, 100,000 steps
    while told.seconds(moment.now) < 7 * 86_400:
        moment.now += S // 2
        while not told.is_full(moment.now, size):
            moment.now += max(S // 2, (moment.now - told.start) // 8)
        told.start = moment.now
        size += largest
    assert size < 64_000_000
    assert size > others


# Stacks


@pytest.fixture
def seen() -> Any:
    clock = clocks.CallClock()
    clock.begin(threading.get_ident())
    return stacks.Stacks(clock)


def sampling(seen: Any) -> Any:
    """Return a function of a library, which samples the stack of its caller."""
    names: dict[str, Any] = {"sample": functools.partial(seen.sample, 0, 1_000_000)}
    path = "/usr/lib/python3.11/site-packages/sampling.py"
    exec(compile("def look():\n    sample()\n", path, "exec"), names)
    return names["look"]


def at_lines(seen: Any, count: int, name: str = "train.py") -> None:
    """Sample this thread's stack at so many lines of a script."""
    source = "".join("sample()\n" for _ in range(count))
    names = {"sample": sampling(seen)}
    exec(compile(source, f"/project/{name}", "exec"), names)


def test_each_sample_stands_for_its_time(seen: Any) -> None:
    at_lines(seen, 3)
    at_lines(seen, 3)
    assert [line["at"] for line in seen.new] == [("/project/train.py", n) for n in (1, 2, 3)]
    assert (seen.ns, seen.samples) == (dict.fromkeys(range(3), 2_000_000), dict.fromkeys(range(3), 2))


def test_the_call_under_way_tells_stacks_apart(seen: Any) -> None:
    code = compile("for n in (1, 2):\n    prepare(n)\n    sample()\n", "/project/train.py", "exec")

    def prepare(n: int) -> None:
        if n == 2:
            seen.clock.enter(kinds.SAVE, "save", None)

    exec(code, {"sample": sampling(seen), "prepare": prepare})
    assert [line["call"] for line in seen.new] == [0, 1]


def test_a_thread_that_is_gone_is_not_seen(seen: Any) -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    seen.clock.thread, seen.clock.owner = thread.ident, thread
    seen.sample(0, 1)
    assert seen.clock.thread == threading.main_thread().ident
    seen.sample(0, 1)
    assert sum(seen.samples.values()) == 2


def test_stacks_are_bounded(seen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "MOST_STACKS", 10)
    for number in range(10):
        at_lines(seen, 10, f"{number}.py")
    told = [line["at"] for line in seen.new]
    assert len(told) < 30
    assert None in told
    assert sum(seen.samples.values()) == 100
    assert [line["id"] for line in seen.new] == list(range(len(told)))


def test_deep_stacks_are_bounded(seen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "MOST_FRAMES", 5_000)
    source = "def down(n):\n    sample()\n    if n:\n        down(n - 1)\n        sample()\n"
    names: dict[str, Any] = {"sample": sampling(seen)}
    exec(compile(source, "/project/tree.py", "exec"), names)
    names["down"](150)
    names["down"](150)
    assert seen.frames <= 5_000 + 400
    assert sum(seen.samples.values()) == 2 * 301
    assert len(seen.new) < 10


def test_known_ways_are_read_anew_when_loops_are_learned(seen: Any) -> None:
    source = "for n in (1, 2, 3):\n    sample()\n    step()\nsample()\n"
    names = {"sample": sampling(seen), "step": lambda: seen.clock.training.add(inspect.stack()[1].frame)}
    exec(compile(source, "/project/train.py", "exec"), names)
    assert [line["looped"] for line in seen.new] == [False, True, False]


# The files: what was written stays readable, whatever the disk does


@pytest.fixture
def file(tmp_path: Path) -> Any:
    return account.LogFile(str(tmp_path))


def written(file: Any) -> list[Any]:
    return [json.loads(line) for line in Path(file.path).read_text().splitlines()]


def test_lines_are_added(file: Any) -> None:
    file.append([{"kind": "call", "name": "größe\n\u2028"}])
    file.append([])
    file.append([{"kind": "end"}])
    assert written(file) == [{"kind": "call", "name": "größe\n\u2028"}, {"kind": "end"}]
    assert file.size == Path(file.path).stat().st_size


def test_what_is_not_over_is_replaced(file: Any) -> None:
    file.replace([{"kind": "bucket", "end": 1}])
    file.replace([{"kind": "bucket", "end": 2}])
    assert json.loads(Path(file.now).read_text())["end"] == 2
    file.settle()
    file.settle()
    assert not Path(file.now).exists()


def test_a_full_file_gets_buckets_and_the_end_only(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "MOST_BYTES", 100)
    file.append([{"kind": "stack", "id": 1, "at": "a" * 100}])
    file.append([{"kind": kind} for kind in ("span", "stack", "bucket", "end")])
    assert [line["kind"] for line in written(file)] == ["stack", "bucket", "end"]


def test_what_a_broken_disk_refuses_waits(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file.append([{"kind": "call"}])
    path, file.path = file.path, "/nowhere/run.jsonl"
    with pytest.raises(OSError, match="nowhere"):
        file.append([{"kind": "bucket", "end": 1}])
    monkeypatch.setattr(account, "MOST_WAITING", 60)
    with pytest.raises(OSError, match="nowhere"):
        file.append([{"kind": "bucket", "end": 2, "stacks": "a" * 100}])
    file.path = path
    file.append([{"kind": "bucket", "end": 3}])
    assert [line.get("end") for line in written(file)] == [None, 1, 3]


def test_a_disk_that_is_full_within_a_line_leaves_whole_lines(tmp_path: Path) -> None:
    source = f"""
import json, resource, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.capture import agent
file = agent.load("run.account").LogFile({str(tmp_path)!r})
file.append([{{"kind": "call", "name": "first"}}])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (file.size + 10, hard))
try:
    file.append([{{"kind": "bucket", "end": 1}}])
except OSError as error:
    print("refused")
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
file.append([{{"kind": "end"}}])
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"
    lines = (tmp_path / "run.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["call", "bucket", "end"]

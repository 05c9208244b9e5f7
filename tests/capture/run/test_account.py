"""What the file is told: buckets without gaps, bounded stacks, and a week of a run in little room."""

from tests.capture.run.kit import *

account = agent.load("run.account")
stacks = agent.load("run.stacks")


def made(moment: Time) -> Any:
    return account.Buckets(started(), moment.now, moment.now - S // 5)


@pytest.fixture
def told(moment: Time) -> Any:
    """Buckets of a clock in a time of its own."""
    return made(moment)


@pytest.fixture
def file(tmp_path: Path) -> Any:
    return account.LogFile(str(tmp_path))


def written(file: Any) -> list[Any]:
    return [json.loads(line) for line in Path(file.path).read_text().splitlines()]


def train(clock: Any, moment: Time, steps: int, ms: float, line: int = 7) -> None:
    """Take steps at a line of a script's."""
    parent = clock.places.script
    for _ in range(steps):
        place = clock.places.of(kinds.STEP, ("/p/train.py", line), "repeated-call", parent)
        clock.entered[place] = clock.entered.get(place, 0) + 1
        clock.steps.begins(place, moment.now, 1, first=False, traced=False)
        clock.switch(place)
        moment.sleep(ms)
        clock.steps.ends(moment.now)
        clock.switch(parent)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0.1, 400), st.booleans()), min_size=1, max_size=30))
def test_buckets_follow_one_another_and_lose_nothing(parts: list[tuple[int, float, bool]]) -> None:
    with fake_time() as moment:
        told, lines = made(moment), []
        for steps, ms, closes in parts:
            train(told.clock, moment, steps, ms)
            moment.sleep(5)
            line = told.bucket(closes=closes)
            lines += [line] if closes else []
        told.clock.steps.passes_over()
        lines.append(told.bucket(closes=True))
    calls = sum(steps for steps, _, _ in parts)
    assert [line["start"] for line in lines] == [0.2, *(line["end"] for line in lines[:-1])]
    assert lines[-1]["end"] == pytest.approx(told.seconds(moment.now))
    total = sum(ms for line in lines for ms in line["calls"].values())
    assert total == pytest.approx((lines[-1]["end"] - 0.2) * 1e3, abs=0.01 * len(lines))
    assert sum(step["calls"] for line in lines for step in line["steps"]) == calls
    assert sum(sum(line["entered"].values()) for line in lines) == calls
    for line in lines:
        width = (line["end"] - line["start"]) * 1e3
        assert sum(line["calls"].values()) == pytest.approx(width, abs=0.01)


def test_an_open_bucket_is_told_again_until_it_closes(told: Any, moment: Time) -> None:
    lines = []
    for steps, closes in ((3, False), (2, True)):
        train(told.clock, moment, steps, 10)
        told.clock.steps.passes_over()
        lines.append(told.bucket(closes=closes))
    assert [len(line["steps"][0]["each"]) for line in lines] == [3, 5]
    empty = told.bucket(closes=True)
    assert (empty["steps"], {*empty["calls"].values()} <= {0.0}) == ([], True)


def test_the_width_grows_with_the_run_and_with_the_file(told: Any) -> None:
    def width(age_s: float, size: int = 0) -> float:
        told.start = int(age_s * S)
        waited = 0.0
        while not told.is_full(told.start + int(waited * S), size):
            waited += 0.05
        return waited

    assert width(10) == pytest.approx(0.45, abs=0.1)
    assert width(4000) == pytest.approx(9, rel=0.1)
    assert width(4000, 16_000_000) == pytest.approx(36, rel=0.1)


def test_spans_that_are_not_over_are_told(told: Any, moment: Time) -> None:
    told.clock.enter(kinds.FIT, "Model.fit", None)
    told.clock.epoch_begins()
    moment.sleep(2000)
    (span,) = told.open_spans(moment.now)
    assert (span["open"], round(span["end"] - span["start"], 3)) == (True, 2)


# A week


def test_a_week_stays_below_64_mb(told: Any, moment: Time, file: Any) -> None:
    """Of a program of many lines and calls: written every 100 s here, so that it takes seconds."""
    clock, number, lines, most_open = told.clock, itertools.count(), 2000, 0
    file.append([{"kind": "process", "pid": 1}])
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
        bucket = [told.bucket(closes=True)] if closes else []
        most_open = max(most_open, len(json.dumps(bucket)))  # it is the largest when it closes
        file.append([*told.told(), *bucket])
    assert file.size < 64_000_000
    assert most_open < 100_000  # what is written every second
    assert {"bucket", "call", "span", "stack"} <= {line["kind"] for line in written(file)}


@each(1_000, 30_000, 500_000)
def test_a_week_of_the_largest_buckets_stays_below_64_mb(largest: int, told: Any, moment: Time) -> None:
    """Whatever a program does: buckets get wider as they fill the file, and all else is counted in the bound."""
    size = others = 9_000_000  # 20,000 spans, 8000 stacks, 5000 calls and traces, 2000 long steps, 100,000 steps
    while told.seconds(moment.now) < 7 * 86_400:
        moment.now += S // 2
        while not told.is_full(moment.now, size):
            moment.now += max(S // 2, (moment.now - told.start) // 8)
        told.start = moment.now
        size += largest
    assert others < size < 64_000_000


# Stacks


@pytest.fixture
def seen() -> Any:
    return stacks.Stacks(started())


def sampled(seen: Any, source: str, path: str = USERS, **names: Any) -> dict[str, Any]:
    """Run a source that samples this thread's stack by a function of a library; return its names."""
    library = "/usr/lib/python3.11/site-packages/sampling.py"
    look = users("def look():\n    sample()\n", library, sample=functools.partial(seen.sample, 0, MS))["look"]
    return users(source, path, sample=look, **names)


def test_each_sample_stands_for_its_time(seen: Any) -> None:
    for _ in range(2):
        sampled(seen, "sample()\n" * 3)
    assert [line["at"] for line in seen.new] == [(USERS, n) for n in (1, 2, 3)]
    assert (seen.ns, seen.samples) == (dict.fromkeys(range(3), 2 * MS), dict.fromkeys(range(3), 2))


def test_the_call_under_way_tells_stacks_apart(seen: Any) -> None:
    saves = functools.partial(seen.clock.enter, kinds.SAVE, "save", None)
    sampled(seen, "for n in (1, 2):\n    n == 1 or saves()\n    sample()\n", saves=saves)
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
        sampled(seen, "sample()\n" * 10, f"/project/{number}.py")
    told = [line["at"] for line in seen.new]
    assert (len(told) < 30, None in told, sum(seen.samples.values())) == (True, True, 100)
    assert [line["id"] for line in seen.new] == list(range(len(told)))


def test_deep_stacks_are_bounded(seen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "MOST_FRAMES", 5_000)
    source = "def down(n):\n    sample()\n    if n:\n        down(n - 1)\n        sample()\n"
    down = sampled(seen, source)["down"]
    down(150)
    down(150)
    assert (seen.frames <= 5_000 + 400, sum(seen.samples.values()), len(seen.new) < 10) == (True, 2 * 301, True)


def test_known_ways_are_read_anew_when_loops_are_learned(seen: Any) -> None:
    source = "for n in (1, 2, 3):\n    sample()\n    step()\nsample()\n"
    sampled(seen, source, step=lambda: seen.clock.training.add(caller()))
    assert [line["looped"] for line in seen.new] == [False, True, False]


# The files: what was written stays readable, whatever the disk does


def test_lines_are_added(file: Any) -> None:
    lines = [{"kind": "call", "name": "größe\n\u2028"}, {"kind": "end"}]
    for part in (lines[:1], [], lines[1:]):
        file.append(part)
    assert written(file) == lines
    assert file.size == Path(file.path).stat().st_size


def test_what_is_not_over_is_replaced(file: Any) -> None:
    for end in (1, 2):
        file.replace([{"kind": "bucket", "end": end}])
    assert json.loads(Path(file.now).read_text())["end"] == 2
    file.settle()
    file.settle()
    assert not Path(file.now).exists()


def test_a_full_file_gets_buckets_and_the_end_only(file: Any) -> None:
    file.most = 100
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


def test_a_disk_that_is_full_within_a_line_leaves_whole_lines(file: Any) -> None:
    source = f"""
import json, resource, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.capture import agent
file = agent.load("run.account").LogFile({str(Path(file.path).parent)!r})
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
    assert [line["kind"] for line in written(file)] == ["call", "bucket", "end"]

"""What is measured ends where the agent says so; what follows is there for samples of the stack only."""

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import PS, Row, device, line, trace
from tfdoctor.trace import Event, Line, Trace
from tfdoctor.trace.xplane import measured

END = 50.0

moments = st.integers(0, 99).map(float)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Events of one thread with a stat or without, around the end of what is measured."""
    found: list[Row] = []
    for start in sorted(draw(st.lists(moments, unique=True, max_size=12))):
        stats = draw(st.dictionaries(st.sampled_from("ab"), st.integers(0, 9), max_size=2))
        found.append((draw(st.sampled_from("xyz")), start, start + draw(moments), stats))
    return found


def of(host: list[Row], other: list[Row], gpu: list[Row], *ends: float) -> Trace:
    said: list[Row] = [("tfdoctor_end", at, at) for at in ends]
    return trace(host=[line("python", *host, *said), line("pool", *other)], gpus=[device(line("Stream", *gpu))])


def events(one: Line) -> list[tuple[str, int, int, dict[str, object]]]:
    return [(e.name, e.start_ps // PS, e.end_ps // PS, dict(e.stats)) for e in one.events()]


def started(one: Event) -> bool:
    return one.start_ps < END * PS


def ended(one: Event) -> bool:
    return one.end_ps <= END * PS


@given(rows(), rows(), rows())
def test_the_host_has_what_ended_and_the_device_what_began(
    host: list[Row], other: list[Row], gpu: list[Row]
) -> None:
    whole = of(host, other, gpu, END, 200.0)
    part = measured(whole)
    assert part.sampled is whole
    tests = [(line, ended) for line in whole.host_lines]
    tests += [(line, started) for line in whole.devices("GPU")[0].lines]
    lines = [*part.host_lines, *part.devices("GPU")[0].lines]
    for found, (before, test) in zip(lines, tests, strict=True):
        kept = [(e.name, e.start_ps // PS, e.end_ps // PS, dict(e.stats)) for e in before.events() if test(e)]
        assert events(found) == kept


@given(rows(), rows(), rows(), st.lists(st.just(END), max_size=1))
def test_a_profiler_that_stopped_there_left_all_it_had(
    host: list[Row], other: list[Row], gpu: list[Row], ends: list[float]
) -> None:
    whole = of(host, other, gpu, *ends)
    assert measured(whole) is whole


def test_calls_for_samples_are_cut_where_the_second_end_is_missing() -> None:
    whole = of([("x", 10.0, 20.0), ("tfdoctor_sampled", 60.0, 70.0)], [], [], END)
    assert [name for name, *_ in events(measured(whole).host_lines[0])] == ["x", "tfdoctor_end"]

"""XSpace messages for tests: in a few literals, and by hypothesis in all their variety."""

from scripts.synthetic.xspace import Space
from tests.kit import *
from tfdoctor.trace.names import NUMERIC, WANTED

TRACES = Path(__file__).parents[1].parent / "shared" / "traces"
"""Real traces, which do not belong to the project; tests that want them skip without."""

NUMBERS = sorted(NUMERIC & WANTED)
TEXTS = sorted(WANTED - NUMERIC)

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)
ANY_VALUE = st.one_of(
    st.tuples(st.just("int64_value"), INT64),
    st.tuples(st.just("uint64_value"), UINT64),
    st.tuples(st.just("ref_value"), UINT64),
    st.tuples(st.just("double_value"), st.floats()),
    st.tuples(st.just("str_value"), st.text(max_size=6)),
    st.tuples(st.just("bytes_value"), st.binary(max_size=6)),
)
"""A stat's field and content, of any kind and size."""

ANY_NAME = st.sampled_from([*NUMBERS, *TEXTS, "unwanted", "profile_start_time", ""])
PLANES = st.sampled_from(["/host:CPU", "/device:GPU:0", "/device:TPU:0", "Task Environment", ""])
EVENT_NAMES = st.sampled_from(
    ["train", "train_function", "MemcpyH2D", "IteratorGetNext/_1:_Send", "ThreadpoolListener::X",
     "Iterator::Root", "\0amed", ""]
)  # fmt: skip


def save(space: Space, path: Path) -> Path:
    path.write_bytes(space.serialized())
    return path


@st.composite
def hostile(draw: st.DrawFn) -> Space:
    """Valid messages with nothing sensible in them."""
    space = Space()
    for name in draw(st.lists(PLANES, min_size=1, max_size=3)):
        plane = space.plane(name).proto
        for key in draw(st.lists(st.sampled_from([-1, 0, 1, 2, 3, 2**63 - 1]), max_size=4)):
            plane.stat_metadata[key].name = draw(ANY_NAME)
            plane.event_metadata[key].name = draw(EVENT_NAMES)
            _any_stats(draw, plane.event_metadata[key])
        _any_stats(draw, plane)
        for _ in range(draw(st.integers(0, 2))):
            line = plane.lines.add(name=draw(st.text(max_size=4)), timestamp_ns=draw(INT64))
            _any_events(draw, line)
    return space


def _any_events(draw: st.DrawFn, line: Any) -> None:
    for _ in range(draw(st.integers(0, 4))):
        event = line.events.add(
            metadata_id=draw(st.integers(-1, 3)), offset_ps=draw(INT64), duration_ps=draw(INT64)
        )
        _any_stats(draw, event)


def _any_stats(draw: st.DrawFn, owner: Any) -> None:
    for kind, value in draw(st.lists(ANY_VALUE, max_size=3)):
        stat = owner.stats.add(metadata_id=draw(st.sampled_from([-1, 0, 1, 2, 3, 2**63 - 1])))
        setattr(stat, kind, value)


TIMES = st.integers(0, 3) | st.integers(0, 10**15)
STATS = st.dictionaries(
    st.sampled_from(["step_num", "flops"]), st.integers(-(2**40), 2**40), max_size=2
) | st.dictionaries(st.sampled_from(["name", "tf_op"]), st.text("abc:/", min_size=1, max_size=5), max_size=2)
EVENTS = st.lists(st.tuples(st.sampled_from(["a", "b:Mul", "Iterator::X"]), TIMES, TIMES, STATS), max_size=12)
"""Events as a sane writer writes them: (name, offset, duration, stats)."""

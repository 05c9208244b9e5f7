"""The script's own profiler comes first, whatever opens its session: ours ends, and waits for its end."""

from tests.capture.kit import *
from tests.capture.windows import make, run, source

users: Any = agent.load("hooks.users_profiler")
sessions: Any = agent.load("hooks.session_steps")


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return make(tmp_path, monkeypatch)


def steps(window: Any, number: int) -> Any:
    """Take so many steps of a loop."""
    run(window, number)
    return source(window, "keras-fit")


def lacks(window: Any) -> dict[str, str]:
    return {entry["what"]: entry["why"] for entry in window.log.lacking}


def tensorflow(seen: list[Any], window: Any) -> Any:
    """Return what TensorFlow has, each of which notes the state of our window while it runs."""

    def note(*_: object, **__: object) -> None:
        seen.append(window.capture)

    kind = type("ProfilerSession", (), {"start": note})
    native = SimpleNamespace(ProfilerSession=kind)
    return SimpleNamespace(__name__="profiler", start=note, stop=note, trace=note, _pywrap_profiler=native)


def listening(window: Any) -> Any:
    """Return the stream of events of a process that has this window."""
    stream = agent.load("stream").Stream(window.log)
    users.listen(stream, users.Lending(window, None))
    return stream


@each(
    lambda module: module._pywrap_profiler.ProfilerSession().start("", {}),  # noqa: SLF001 - as a script may
    lambda module: module.start("logs"),
    lambda module: module.stop(),
    lambda module: module.trace("localhost:1", "logs", 100),
    ids=["session", "start", "stop without a start", "client"],
)
def test_every_way_to_a_session_ends_ours(profile: Any, window: Any) -> None:
    seen: list[Any] = []
    module, profiler = tensorflow(seen, window), window.profiler
    for patch in (one for hooks in listening(window).hooks().values() for one in hooks):
        patch(module)
    assert window.profiler.start is module.start.__wrapped__
    window.profiler = profiler
    steps(window, window.plan["warmup"] + 2)
    assert window.profiler.running()
    profile(module)
    assert seen == [None]
    assert window.lent == 0


def test_no_window_opens_at_a_step_that_the_script_profiles(window: Any) -> None:
    held: list[Any] = []
    users.Lending(window, None).lend(held)
    loop = steps(window, window.plan["warmup"] + 5)
    ((give_back, token),) = held
    give_back(token, None, None)
    assert not window.captures
    assert "FULL_TRACE" in lacks(window)["trace"]
    assert window.refusals == 0
    loop.begin(1)
    assert window.profiler.running()
    assert lacks(window) == {}


def test_a_trace_that_ends_early_is_told_unless_a_later_one_is_whole(window: Any) -> None:
    lending = users.Lending(window, None)
    loop = steps(window, window.plan["warmup"] + 2)
    lending.give_way()
    assert "ended early" in lacks(window)["window"]
    loop.begin(1)
    assert window.profiler.running()
    assert lacks(window) == {}


def test_options_that_open_a_session() -> None:
    options = None, SimpleNamespace(trace_level=1), SimpleNamespace(trace_level=3)
    assert [sessions.profiles(one) for one in options] == [False, False, True]

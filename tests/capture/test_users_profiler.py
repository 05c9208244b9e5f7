"""The script's own profiler comes first, whatever opens its session: ours ends, and waits for its end."""

from tests.capture.kit import *
from tests.capture.windows import make, run, source

users: Any = agent.load("hooks.users_profiler")
sessions: Any = agent.load("hooks.session_steps")


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return make(tmp_path, monkeypatch, warmup=10)


def steps(window: Any, number: int) -> Any:
    """Take so many steps of a loop after those of the warm-up."""
    run(window, 10 + number)
    return source(window, "keras-fit")


def lacks(window: Any) -> dict[str, str]:
    return {entry["what"]: entry["why"] for entry in window.log.lacking}


def tensorflow(seen: list[Any], window: Any) -> Any:
    """Return what TensorFlow has, each of which notes the state of our window while it runs."""

    def note(*_: object, **__: object) -> None:
        seen.append(window.capture)

    native = SimpleNamespace(ProfilerSession=type("ProfilerSession", (), {"start": note}))
    return SimpleNamespace(__name__="profiler", start=note, stop=note, trace=note, _pywrap_profiler=native)


@each(
    lambda module: module._pywrap_profiler.ProfilerSession().start("", {}),  # noqa: SLF001 - as a script may
    lambda module: module.start("logs"),
    lambda module: module.stop(),
    lambda module: module.trace("localhost:1", "logs", 100),
    ids=["session", "start", "stop without a start", "client"],
)
def test_every_way_to_a_session_ends_ours(profile: Any, window: Any) -> None:
    seen: list[Any] = []
    module, profiler, stream = tensorflow(seen, window), window.profiler, agent.load("stream").Stream(window.log)
    users.listen(stream, users.Lending(window, None))
    for patch in (one for hooks in stream.hooks().values() for one in hooks):
        patch(module)
    assert window.profiler.start is module.start.__wrapped__
    window.profiler = profiler
    steps(window, 2)
    assert window.profiler.running()
    profile(module)
    assert (seen, window.lent) == ([None], 0)


def test_no_window_opens_at_a_step_that_the_script_profiles(window: Any) -> None:
    held: list[Any] = []
    users.Lending(window, None).lend(held)
    loop = steps(window, 5)
    ((give_back, token),) = held
    give_back(token, None, None)
    assert (window.captures, window.refusals) == (0, 0)
    assert "FULL_TRACE" in lacks(window)["trace"]
    loop.begin(1)
    assert (window.profiler.running(), lacks(window)) == (True, {})


def test_a_trace_that_ends_early_is_told_unless_a_later_one_is_whole(window: Any) -> None:
    lending = users.Lending(window, None)
    loop = steps(window, 2)
    lending.give_way()
    assert "ended early" in lacks(window)["window"]
    loop.begin(1)
    assert (window.profiler.running(), lacks(window)) == (True, {})


def test_options_that_open_a_session() -> None:
    options = None, SimpleNamespace(trace_level=1), SimpleNamespace(trace_level=3)
    assert [sessions.profiles(one) for one in options] == [False, False, True]

"""What the agent's own faults do to the user's code: nothing, unless the fault is the user's."""

from tests.capture.kit import *

journal: Any = agent.load("process.journal")


class TimeLimitError(Exception):
    """What a script raises when its time is over."""


def limit(*_: object) -> None:
    raise TimeLimitError


class Limit:
    """An object whose method, or which itself, handles signals."""

    def method(self, *_: object) -> None:
        raise TimeLimitError

    def __call__(self, *_: object) -> None:
        raise TimeLimitError


class Heir(Limit):
    """An object whose class inherits what handles signals."""


class Hook:
    """A hook that takes long enough for a signal."""

    def __init__(self, log: Any) -> None:
        self.log = log

    def works(self, then: Exception | None = None) -> None:
        signal.raise_signal(signal.SIGUSR1)
        if then is not None:
            raise then


@pytest.fixture
def called(log: Any) -> Iterator[Callable[..., None]]:
    """Calls a guarded hook while a handler is that of signals."""
    before = signal.getsignal(signal.SIGUSR1)

    def call(handler: Any, *then: Exception) -> None:
        signal.signal(signal.SIGUSR1, handler)
        journal.guarded("work")(Hook.works)(Hook(log), *then)

    yield call
    signal.signal(signal.SIGUSR1, before)


@each(
    *(limit, functools.partial(limit, 1), Limit().method, Limit(), Heir()),
    ids=["function", "partial", "method", "object", "heir"],
)
def test_what_a_signals_handler_raises_in_a_hook_is_the_users(handler: Any, called: Any, log: Any) -> None:
    with pytest.raises(TimeLimitError):
        called(handler)
    assert log.errors == []


def test_a_fault_of_a_hook_is_noted_and_goes_no_further(called: Any, log: Any) -> None:
    """Trap: a script that handles signals, one of which came in the hook and raised nothing."""
    called(lambda *_: None, ValueError("ours"))
    assert log.errors == [{"where": "work", "error": "ValueError: ours"}]

"""What the agent's own faults do to the user's code: nothing, unless the fault is the user's."""

import functools
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.capture import agent

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


HANDLERS: dict[str, Callable[..., None]] = {
    "function": limit,
    "partial": functools.partial(limit, 1),
    "method": Limit().method,
    "object": Limit(),
    "heir": Heir(),
}


class Hook:
    """A hook that takes long enough for a signal."""

    def __init__(self, folder: Path) -> None:
        self.log = journal.Journal(str(folder))

    def works(self, then: Exception | None = None) -> None:
        signal.raise_signal(signal.SIGUSR1)
        if then is not None:
            raise then


@pytest.fixture(params=HANDLERS)
def handled(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, HANDLERS[request.param])
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("handled")
def test_what_a_signals_handler_raises_in_a_hook_is_the_users(tmp_path: Path) -> None:
    hook = Hook(tmp_path)
    works = journal.guarded("work")(Hook.works)
    with pytest.raises(TimeLimitError):
        works(hook)
    assert hook.log.errors == []


def test_a_fault_of_a_hook_is_noted_and_goes_no_further(tmp_path: Path) -> None:
    """Trap: a script that handles signals, one of which came in the hook and raised nothing."""
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    hook = Hook(tmp_path)
    journal.guarded("work")(Hook.works)(hook, ValueError("ours"))
    signal.signal(signal.SIGUSR1, before)
    assert hook.log.errors == [{"where": "work", "error": "ValueError: ours"}]

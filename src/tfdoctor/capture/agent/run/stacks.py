"""Stack samples of the thread that the account follows: which stacks, and for how much time each stands."""

from __future__ import annotations

from ..process.other_threads import OtherThreads
from ..process.stack import Stack, public_name, user_file, user_line
from .compiled_calls import compiled_call
from .kinds import IMPORTING, MODEL
from .loops import loops_around, repeats
from .switching import SwitchInterval
from .work import Works, calls_model, imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    from .clock import CallClock

    Ways = tuple[int, ...]
    # The number of the call under way, what was seen, and whether in a long step:
    Key = tuple[int, object, bool]

MOST_FRAMES = 200_000
"""Frames of the ways through the program that are remembered, 16 MB at most; to read a way anew takes 0.1 ms."""

MOST_STACKS = 4000
"""Stacks that the file tells apart; of later ones the line and the call, and then the call alone."""


class SampledStack:
    """What a stack shows: the user's lines, what they call, the work, and the loops that hold it."""

    __slots__ = (
        "function",
        "key",
        "looped",
        "loops",
        "named",
        "numbers",
        "repeats",
        "stack",
        "step",
        "step_call",
        "tested",
        "work",
    )

    def __init__(self, frame: FrameType, clock: CallClock, works: Works) -> None:
        self.stack = Stack.of(frame, None)
        self.function, self.work = _user_function(frame), works.of(frame)
        self.named = ""  # what the line calls, where no frame of the stack says it
        if self.work == IMPORTING:
            self.named = imported(frame)
        elif self.stack.calls is None:
            self.named = compiled_call(frame)
        self.looped = clock.training.hold(frame)
        if self.work == MODEL and clock.trains and not self.looped and not clock.running:
            clock.testing.add(calls_model(frame))  # a loop that calls the model without training it
        self.tested = clock.testing.hold(frame)
        self.repeats, self.loops = repeats(frame), loops_around(frame, clock.training)
        called = clock.training.called(frame) if self.looped else None
        self.step = called and (called[0].co_filename, called[0].co_firstlineno)
        self.step_call = called and user_line(called[1])
        self.key = self._key()
        self.numbers: dict[tuple[int, bool], int] = {}

    def _key(self) -> tuple[object, ...]:
        seen = self.stack, self.work, self.named, self.looped, self.tested
        return (*seen, self.repeats, self.loops, self.step, self.step_call)

    def shortened(self, *, with_line: bool) -> SampledStack:
        """Return the same without what tells many stacks apart."""
        short: SampledStack = object.__new__(SampledStack)
        short.stack, short.work, short.named = Stack(), self.work, ""
        short.stack.line = self.stack.line if with_line else None
        short.function = self.function if with_line else ""
        short.looped, short.tested = self.looped, self.tested
        short.repeats = self.repeats if with_line else None
        short.loops = self.loops if with_line else 0
        short.step = short.step_call = None
        short.key = short._key()
        return short


class Stacks:
    """What samples showed since the file was last written."""

    def __init__(self, clock: CallClock) -> None:
        self.clock = clock
        self.works, self.interval = Works(), SwitchInterval()
        self.numbers: dict[Key, int] = {}
        self.new: list[dict[str, object]] = []
        self.ns: dict[int, int] = {}  # by the number of a stack
        self.samples: dict[int, int] = {}
        self.forget()

    def forget(self) -> None:
        """The loops have changed: read stacks anew."""
        self.known: dict[Ways, SampledStack] = {}
        self.frames = 0  # of all that is known
        self.alive: dict[int, CodeType] = {}  # so that no other code gets the id of one of these
        self.loops = self._loops()

    def _loops(self) -> tuple[int, int]:
        clock = self.clock
        return len(clock.training.alive), len(clock.testing.alive)

    def sample(self, now: int, ns: int) -> None:
        """See where the thread is at a moment; the sample stands for so many ns."""
        clock = self.clock
        clock.look_after_thread()
        clock.sampled()
        if self.loops != self._loops():
            self.forget()
        with OtherThreads() as frames:
            self.interval.look(frames, clock.thread)
            frame = frames.get(clock.thread or 0)
            if frame is None:
                return
            seen = self._known(frame)
        self.interval.sampled(imports=seen.work == IMPORTING)
        key = clock.current.number, clock.in_long_step(now)
        number = seen.numbers.get(key)
        if number is None:
            number = seen.numbers[key] = self._number((key[0], seen.key, key[1]), seen)
        self.ns[number] = self.ns.get(number, 0) + ns
        self.samples[number] = self.samples.get(number, 0) + 1

    def _known(self, frame: FrameType) -> SampledStack:
        """Return what a stack shows, once read: reading all its lines takes longer than all else does."""
        way = _way(frame)
        known = self.known.get(way)
        if known is None:
            known = SampledStack(frame, self.clock, self.works)
            if self.frames >= MOST_FRAMES:
                self.forget()
            self.frames += len(way) // 2
            self.known[way] = known
            at: FrameType | None = frame
            while at is not None:
                self.alive[id(at.f_code)] = at.f_code
                at = at.f_back
        return known

    def _number(self, key: Key, seen: SampledStack) -> int:
        """Return the number of a stack that is new; many share one where there are too many."""
        call, _, long = key
        stack, number = seen.stack, self.numbers.get(key)
        if number is not None:
            return number
        if len(self.numbers) >= MOST_STACKS:
            seen = seen.shortened(with_line=len(self.numbers) < 2 * MOST_STACKS)
            stack, key = seen.stack, (call, seen.key, long)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.numbers)
            self.new.append(
                {
                    "kind": "stack",
                    "id": number,
                    "call": call,
                    "at": stack.line,
                    "caller": stack.caller,
                    "calls": seen.named or public_name(stack.calls),
                    "runs": public_name(stack.runs),
                    "function": seen.function,
                    "work": seen.work,
                    "looped": seen.looped,
                    "tested": seen.tested,
                    "long": long,
                    "repeats": seen.repeats,
                    "loops": seen.loops,
                    "step": seen.step,
                    "step_call": seen.step_call,
                }
            )
        return number

    def take(self) -> tuple[dict[str, float], dict[str, int]]:
        """Return the ms and the samples of each stack since the last time."""
        ns, samples = self.ns, self.samples
        self.ns, self.samples = {}, {}
        return {str(n): round(t / 1e6, 2) for n, t in ns.items()}, {
            str(n): count for n, count in samples.items()
        }


def _way(frame: FrameType | None) -> Ways:
    """Return the code and the instruction of each frame of a stack: code as its id, which is fast to compare."""
    way: list[int] = []
    while frame is not None:
        way.append(id(frame.f_code))
        way.append(frame.f_lasti)
        frame = frame.f_back
    return tuple(way)


def _user_function(frame: FrameType | None) -> str:
    """Return the name of the user's function that holds their innermost line; "" where there is none."""
    while frame is not None:
        if user_file(frame.f_code.co_filename) is not None:
            code = frame.f_code
            return str(getattr(code, "co_qualname", code.co_name))
        frame = frame.f_back
    return ""

"""Stack samples of the thread that the account follows: which stacks, and for how much time each stands."""

from __future__ import annotations

from ..process.all_threads import OtherThreads
from ..process.callbacks import callbacks_in
from ..process.compiled_calls import compiled_call
from ..process.stack import Stack, function_of, instructions, public_name, user_frame, user_line
from .kinds import IMPORTING, MODEL
from .loops import loops_around, repeats
from .switching import SwitchInterval
from .waiting import SLEEP, WAITING, CPUTimes
from .work import calls_model, imported, work_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    from ..process.stack import Instructions
    from .clock import CallClock

    # Whether in a long step, and whether the process waited for children:
    Times = tuple[bool, bool]
    # The number of the call under way, what was seen, and when:
    Key = tuple[int, object, Times]

# Frames of the ways through the program that are remembered, 16 MB at most; to read a way anew takes 0.1 ms.
MOST_FRAMES = 200_000
MOST_STACKS = 4000  # Stacks that the file tells apart; of later ones the line and the call, and then the call alone


class SampledStack:
    """What a stack shows: the user's lines, what they call, the work, and the loops that hold it."""

    __slots__ = (
        *("callback", "function", "key", "looped", "loops", "named", "numbers"),
        *("repeats", "stack", "step", "step_call", "tested", "waits", "work"),
    )

    def __init__(self, frame: FrameType, clock: CallClock) -> None:
        self.stack, self.work = Stack.of(frame, None), work_of(frame)
        users = user_frame(frame)
        self.function = function_of(users)[1] if users is not None else ""
        *_, self.callback = "", *callbacks_in(frame)  # the outermost: it is what fit was given
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
        idle = frame.f_code.co_filename.endswith(WAITING) or self.named == SLEEP
        self.waits = idle and not self.looped and not self.tested
        self.numbers: dict[tuple[int, Times], int] = {}

    def _key(self) -> tuple[object, ...]:
        seen = self.stack, self.work, self.named, self.looped, self.tested, self.callback
        return (*seen, self.repeats, self.loops, self.step, self.step_call)

    def shortened(self, *, with_line: bool) -> SampledStack:
        """Return the same without what tells many stacks apart."""
        short: SampledStack = object.__new__(SampledStack)
        short.stack = Stack(self.stack.line if with_line else None, *[None] * 5)
        short.work, short.named = self.work, ""
        short.function = self.function if with_line else ""
        short.callback = self.callback
        short.looped, short.tested = self.looped, self.tested
        short.repeats = self.repeats if with_line else None
        short.loops = self.loops if with_line else 0
        short.step = short.step_call = None
        short.key = short._key()
        return short

    def describe(self, number: int, call: int, times: Times) -> dict[str, object]:
        """Return what the file says of a stack with a number, in a call."""
        long, children = times
        return {
            "kind": "stack",
            "id": number,
            "call": call,
            "at": self.stack.line,
            "caller": self.stack.caller,
            "calls": self.named or public_name(self.stack.calls),
            "runs": public_name(self.stack.runs),
            "function": self.function,
            "callback": self.callback,
            "work": self.work,
            "looped": self.looped,
            "tested": self.tested,
            "long": long,
            "children": children,
            "repeats": self.repeats,
            "loops": self.loops,
            "step": self.step,
            "step_call": self.step_call,
        }


class Stacks:
    """What samples showed since the file was last written."""

    def __init__(self, clock: CallClock) -> None:
        self.clock = clock
        self.interval, self.cpu = SwitchInterval(), CPUTimes()
        self.numbers: dict[Key, int] = {}
        self.new: list[dict[str, object]] = []
        self.ns: dict[int, int] = {}  # by the number of a stack
        self.samples: dict[int, int] = {}
        self.forget()

    def forget(self) -> None:
        """The loops have changed: read stacks anew."""
        self.known: dict[Instructions, SampledStack] = {}
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
        seen = self._seen(clock.thread)
        if seen is None:
            return
        rests = clock.rests()
        if seen.waits and rests:
            seen = self._seen(self.cpu.working(clock.thread, now)) or seen
        self.interval.sampled(imports=seen.work == IMPORTING)
        children = self.cpu.awaits_children(ns, now) and rests
        key = clock.current.number, (clock.in_long_step(now), children)
        number = seen.numbers.get(key)
        if number is None:
            number = seen.numbers[key] = self._number((key[0], seen.key, key[1]), seen)
        self.ns[number] = self.ns.get(number, 0) + ns
        self.samples[number] = self.samples.get(number, 0) + 1

    def _seen(self, thread: int | None) -> SampledStack | None:
        """Return what the stack of a thread shows; None where there is no such thread."""
        with OtherThreads() as frames:
            self.interval.look(frames, self.clock.thread)
            frame = frames.get(thread or 0)
            return None if frame is None else self._known(frame)

    def _known(self, frame: FrameType) -> SampledStack:
        """Return what a stack shows, once read: reading all its lines takes longer than all else does."""
        way = instructions(frame)
        known = self.known.get(way)
        if known is None:
            known = SampledStack(frame, self.clock)
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
        call, _, times = key
        if key not in self.numbers and len(self.numbers) >= MOST_STACKS:
            seen = seen.shortened(with_line=len(self.numbers) < 2 * MOST_STACKS)
            key = call, seen.key, times
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.numbers)
            self.new.append(seen.describe(number, call, times))
        return number

    def take(self) -> tuple[dict[str, float], dict[str, int]]:
        """Return the ms and the samples of each stack since the last time."""
        ns, samples = self.ns, self.samples
        self.ns, self.samples = {}, {}
        return {str(n): round(t / 1e6, 2) for n, t in ns.items()}, {str(n): count for n, count in samples.items()}

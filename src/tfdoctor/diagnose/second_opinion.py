"""Asks xprof about a trace while tfdoctor examines it."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from tfdoctor.diagnose.summary import run
from tfdoctor.diagnosis import SecondOpinion
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.savings.price import Price
from tfdoctor.recording import Recording
from tfdoctor.trace import Trace, xplane, xprof

TIMEOUT_S = 120.0
"""xprof reads 10 to 16 MB of trace per second; a longer wait is not worth its opinion."""


class Asked:
    """A question to xprof, which works in a process of its own until the answer is compared."""

    def __init__(self, recording: Recording, *, wanted: bool = True) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._answer: Future[xprof.Opinion] | None = None
        if wanted and recording.traces:
            self._answer = self._pool.submit(xprof.ask, recording.traces[0], timeout_s=TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def compared(self, chart: Chart) -> SecondOpinion | None:
        """Wait for the answer, and compare it; None where xprof was not asked."""
        return run.second_opinion(chart, self._answer.result()) if self._answer else None


def second_opinion(recording: Recording) -> SecondOpinion | None:
    """Ask xprof about a recording, and compare its answer."""
    with Asked(recording) as asked:
        return asked.compared(chart_of(recording))


def chart_of(recording: Recording, price: Price | None = None) -> Chart:
    """Return the chart of a recording's trace.

    Raises:
        InputError: the trace is damaged.
    """
    path = recording.traces[0] if recording.traces else None
    given = () if price is None else (price,)
    return Chart([xplane.read(path) if path else Trace(()), recording, *given])

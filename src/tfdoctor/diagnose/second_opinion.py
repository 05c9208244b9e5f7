"""Compares xprof's opinion on a trace with tfdoctor's."""

from contextlib import AbstractContextManager, nullcontext

from tfdoctor.diagnose.summary import run
from tfdoctor.diagnosis import SecondOpinion
from tfdoctor.facts.chart import Chart
from tfdoctor.recording import Recording
from tfdoctor.trace.xprof import Asked


def asked(recording: Recording, *, wanted: bool = True) -> AbstractContextManager[Asked | None]:
    """Ask xprof about a recording's first trace, where that is wanted."""
    return Asked(recording.traces[0]) if wanted and recording.traces else nullcontext()


def compared(chart: Chart, question: Asked | None) -> SecondOpinion | None:
    """Wait for the answer, and compare it; None where xprof was not asked."""
    return run.second_opinion(chart, question.opinion()) if question else None

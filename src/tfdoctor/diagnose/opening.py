"""Opens the trace of a recording for the facts that are measured of it."""

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.savings.price import Price
from tfdoctor.recording import Recording
from tfdoctor.trace import Trace, xplane


def chart_of(recording: Recording, price: Price | None = None) -> Chart:
    """Return the chart of a recording's trace.

    Raises:
        InputError: the trace is damaged.
    """
    path = recording.traces[0] if recording.traces else None
    given = () if price is None else (price,)
    return Chart([xplane.read(path) if path else Trace(()), recording, *given])

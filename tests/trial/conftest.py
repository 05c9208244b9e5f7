"""What the tests of trials may ask for."""

from tests.kit import *
from tfdoctor.trial import clock as clocks


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let time pass only by the runs."""
    now = [0.0]
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def tick(seconds: float) -> None:
        now[0] += seconds

    return tick

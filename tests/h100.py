"""Charts of real traces of JAX on an NVIDIA H100; tests/facts/steps/test_search.py says how they were made."""

from tests.kit import *
from tfdoctor.diagnose import engine
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Chart
from tfdoctor.recording import Recording
from tfdoctor.trace import xplane

TRACES = Path(__file__).parent / "facts" / "traces"

TIMED_MS = {
    "convnet-float32": 8.79,
    "convnet-bfloat16": 3.89,
    "convnet-bfloat16-130": 15.52,
    "mlp-bfloat16-4000": 5.76,
    "mlp-bfloat16-4001": 17.34,
}
"""The time of a step without the profiler, in ms."""


@cache
def h100(name: str) -> Chart:
    """Return the chart of a trace."""
    with TemporaryDirectory() as folder:
        data = gzip.decompress((TRACES / f"jax-h100-{name}.xplane.pb.gz").read_bytes())
        (Path(folder) / "host.xplane.pb").write_bytes(data)
        opened = Recording.open(Path(folder))
        return Chart([xplane.read(opened.traces[0]), opened])


def judged(name: str, rule: ModuleType) -> Result:
    """Return what a rule says of a trace."""
    (result,) = engine.examine(h100(name), [Rule.from_module(rule)])
    return result

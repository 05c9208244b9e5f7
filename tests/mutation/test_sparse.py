"""Of traces with empty lines, single events, lines, planes or steps, each fact is measured or says why not."""

from random import Random

from scripts.fact_index import measured
from scripts.mutation import sparse
from scripts.mutation.cases import TRACE, write_intact
from scripts.mutation.originals import Original, originals
from tests.kit import *
from tfdoctor.diagnose.diagnose import chart_of
from tfdoctor.diagnose.engine import examine
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Errored
from tfdoctor.trace.wire import xplane_pb2

RULES = tuple(all_rules())
FACTS = measured()

EXAMPLES = 15
"""Traces of each recording: 3 s for all."""

REMOVALS = st.lists(st.tuples(st.sampled_from(sparse.CHANGES), st.integers(0, 30)), min_size=1, max_size=5)
"""What is removed, with the seed that chooses the line, plane, step or event."""


@each(*originals(), ids=[one.name for one in originals()])
@settings(max_examples=EXAMPLES)
@given(removals=REMOVALS)
def test_a_sparse_trace_breaks_no_fact_and_no_rule(
    original: Original, tmp_path_factory: pytest.TempPathFactory, removals: list[tuple[sparse.Change, int]]
) -> None:
    """Trap: of a list of pairs NumPy makes two columns, of an empty one no column at all."""
    folder = tmp_path_factory.mktemp(original.name)
    write_intact(folder, original)
    space = xplane_pb2().XSpace.FromString(original.trace)
    for change, seed in removals:
        change(space, Random(seed))
    (folder / TRACE).write_bytes(space.SerializeToString())
    known = chart_of(Recording.open(folder))
    for fact in FACTS:
        known.why_missing(fact)
    outcomes = [result.outcome for result in examine(known, RULES)]

    assert not known.defects, [*map(str, known.defects)]
    assert [one.traceback for one in outcomes if isinstance(one, Errored)] == []

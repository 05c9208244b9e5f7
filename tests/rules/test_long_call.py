"""long-call: what one call takes before and after the training, with its cheaper form where one is known."""

from tests.rules.kit import *
from tfdoctor.rules.run.long_call import check

TSNE = "sklearn.manifold._t_sne.TSNE.fit_transform"
TOTAL_MS = 60_000.0


def example(*lines: RunLine) -> Verdict:
    """Judge a run of a minute that works at these lines, and trains otherwise."""
    phases = {phase: sum(line.ms for line in lines if line.phase is phase) for phase in Phase}
    return check(divided_run(TOTAL_MS, phases, *lines))


def called(number: int, ms: float, calls: str, phase: Phase = Phase.PREPARING, **more: Any) -> RunLine:
    return run_line(phase, script(number), ms, calls, **({"samples": int(ms / 50), "repeats": False} | more))


def sick() -> Verdict:
    """The predictions are written as text after the training: 25 of 60 s."""
    return example(called(58, 25_000.0, "numpy.savetxt", Phase.END), called(60, 400.0, TSNE, Phase.END))


def healthy() -> Verdict:
    """2,000 embeddings are projected in 2 s."""
    return example(called(58, 2_000.0, TSNE, Phase.END))


@golden_cases
def test_calls(told: Cases) -> None:
    told["no cheaper form, before the training: a note"] = example(called(9, 8_000.0, "umap.UMAP.fit_transform"))
    told["no cheaper form, after the training: a note"] = example(called(9, 8_000.0, "umap.plot", Phase.END))
    told["a form that mostly applies: a note"] = example(called(9, 25_000.0, TSNE, Phase.END))
    told["less than a tenth without a cheaper form"] = example(called(9, 5_000.0, "umap.UMAP.fit_transform"))
    told["a form that is always cheaper from a twentieth on, and no notes beside it"] = example(
        called(9, 5_000.0, "numpy.savez_compressed"), called(30, 9_000.0, "umap.UMAP.fit_transform")
    )
    told["a pass over a dataset, as to count its examples"] = example(
        called(9, 9_000.0, "tensorflow.python.data.ops.iterator_ops.OwnedIterator.__next__", repeats=True)
    )
    told["a loop is slow-preparation's"] = example(called(9, 9_000.0, "", repeats=True))
    told["calls that were timed are other rules'"] = example(called(9, 9_000.0, "keras.Model.predict", exact=True))
    told["what a program of another framework computes"] = check(divided_run(TOTAL_MS, {Phase.OWN: TOTAL_MS}))
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    told["a part of the run"] = applied(check, part)

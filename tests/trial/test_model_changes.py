"""Changes of the model or of the batch in a trial: only by name, per example, and kept only when that is asked."""

from tests.trial.kit import *

TEXT = """from keras import layers

data = data.batch(32)
a = layers.Dense(130)
b = layers.Dense(WIDE)
"""

TWICE, FOUR_TIMES = (f"batch \N{MULTIPLICATION SIGN} {factor}" for factor in (2, 4))

BATCHES = [
    {"id": 0, "class": "MapDataset"},
    {"id": 1, "class": "BatchDataset", "inputs": [0], "parameters": {"batch_size": 32}},
    {"id": 2, "class": "PrefetchDataset", "inputs": [1]},
]


def width(line: int) -> Remedy:
    action = f"Choose 128 instead of 130 in dense_{line}"
    code, changes = "130  ->  128    # fewer tiles", "the model has another size"
    at = Location("train.py", line)
    return Remedy(action, code, at, "layer-width", width=LayerWidth(130, 128), changes=changes)


NARROWER = (width(4),)
BATCH, WIDTH = finding("small-batch"), finding("unaligned-dimension", *NARROWER)


def recording(folder: Path, **program: Any) -> Recording:
    (folder / "train.py").write_text(TEXT)
    made, (first, second, third) = recorded(folder), BATCHES
    batches = [first, {**second, "at": [str(folder / "train.py"), 3]}, third]
    data = {"sources": {**sure(made.program).sources}, "datasets": batches, "feeds": 2, "run": {"batch_size": 32}}
    faults: list[str] = []
    record = read(ProgramRecord, data | program, faults)
    assert not faults
    return replace(made, program=record)


def proposed(
    of: Recording, *only: str, keep: bool = False, results: Any = (BATCH, WIDTH)
) -> tuple[list[Variant], list[NotTried]]:
    return proposals.changes_of_model(of, replace(tried(), results=results), only, keep=keep)


def narrower(
    of: Recording, *only: str, remedies: Sequence[Remedy] = NARROWER, saving: Saving | None = None
) -> tuple[list[Variant], list[NotTried]]:
    found = replace(finding("unaligned-dimension", *remedies), saving=saving)
    results, _ = edited(of, (found,), None)
    variants, missing = proposals.edits(of, replace(tried(), results=results), only, keep=False)
    return [variant for variant, _ in variants], missing


def test_without_their_names_they_are_not_tried(tmp_path: Path) -> None:
    variants, missing = proposed(recording(tmp_path))
    named = {one.name: one.why.rpartition(" ")[2] for one in missing}
    assert named == {"a larger batch": "small-batch"}
    assert variants == []
    assert narrower(recording(tmp_path))[1][0].why.endswith(
        "size, so it is tried only with --only unaligned-dimension"
    )
    assert proposed(recording(tmp_path), "prefetch") == ([], [])


def test_a_batch_is_twice_and_four_times_as_large(tmp_path: Path) -> None:
    variants, _ = proposed(recording(tmp_path), "small-batch")
    for factor, name, variant in zip((2, 4), (TWICE, FOUR_TIMES), variants, strict=True):
        assert [one.decode() for one in variant.files.values()] == [TEXT.replace("32", str(32 * factor))]
        assert (variant.name, variant.examples, variant.may_keep) == (name, Fraction(factor), False)
        assert variant.action == f"Use {32 * factor} examples a batch instead of 32"
        assert variant.model == f"a step has {32 * factor} examples instead of 32"
    assert all(one.may_keep for one in proposed(recording(tmp_path), "small-batch", keep=True)[0])


@cases(
    ({"feeds": None}, "does not show where"),
    ({"run": {"batch_size": 16}}, "does not show where"),
    ({"datasets": [BATCHES[0] | {"parameters": {"batch_size": 2}}, *BATCHES[1:]]}, "several stages"),
    ({"input_kind": "arrays"}, "does not show where"),
)
def test_a_batch_of_unknown_origin_says_so(program: Mapping[str, object], why: str, tmp_path: Path) -> None:
    variants, missing = proposed(recording(tmp_path, **program), "small-batch")
    assert variants == []
    assert [(one.name, why in one.why) for one in missing] == [(TWICE, True), (FOUR_TIMES, True)]


def test_a_width_is_the_advised_one_and_promises_nothing_where_the_file_does_not_show_all(tmp_path: Path) -> None:
    saving = next(result.saving for result in tried().results if result.saving)
    for remedies, promised in ([width(4)], saving), ([width(4), width(5)], None):
        ((variant,), _) = narrower(recording(tmp_path), "unaligned-dimension", remedies=remedies, saving=saving)
        assert [one.decode() for one in variant.files.values()] == [TEXT.replace("130", "128")]
        assert (variant.promised, variant.action) == (promised, "Choose 128 instead of 130 in dense_4")


def test_the_patch_of_the_report_has_none_of_them(tmp_path: Path) -> None:
    results = (finding("small-batch", Remedy("Use a larger batch")), WIDTH)
    assert edited(recording(tmp_path), results, None)[1] == b""


def test_two_changes_of_a_file_are_made_together(tmp_path: Path) -> None:
    of = recording(tmp_path)
    (twice, _), _ = proposed(of, "small-batch")
    results, _ = edited(of, (WIDTH,), None)
    ((other,), _) = narrower(of, "unaligned-dimension")
    both = proposals.joined(of, [twice, other], {"unaligned-dimension": results[0]})
    (text,) = both.files.values()
    assert text.decode() == TEXT.replace("130", "128").replace("batch(32)", "batch(64)")
    assert (both.examples, both.model) == (Fraction(2), f"{twice.model} and {other.model}")


@cases((False,), (True,))
def test_it_is_measured_per_example_compared_with_nothing_and_kept_when_asked(*, may_keep: bool) -> None:
    """A batch twice as large, whose step takes 1.2 times as long."""
    variant = Variant("larger", model="a step has more examples", examples=Fraction(2), may_keep=may_keep)
    machine = Machine({"larger": 1.2}, digests={"larger": "other"}, examples={"larger": [64] * 4})
    trials, kept = conduct(machine, variant)
    larger = row(trials, "larger")
    assert measured(trials, "larger").share == pytest.approx(0.4, abs=0.03)
    assert (larger.step_ms, larger.examples) == pytest.approx((12.0, 2), rel=0.05)
    assert (sure(larger.training).state, kept) == (TrainingState.CHANGED, ["larger"] if may_keep else [])

"""How many batches a pass has: those of the feeding dataset, or of what it repeats."""

from tfdoctor.facts.run.program import FOREVER, Dataset, DatasetParameters, batches_of, line_of


def chain(*stages: tuple[str, int | None], batch: int = 10) -> tuple[Dataset, ...]:
    """A line of datasets, consumers first, each with its kind and cardinality."""
    parameters = DatasetParameters(batch_size=batch)
    return tuple(
        Dataset(
            id=at,
            kind=f"_{kind}Dataset",
            inputs=(at + 1,) if at + 1 < len(stages) else (),
            cardinality=number,
            parameters=parameters if kind == "Batch" else DatasetParameters(),
        )
        for at, (kind, number) in enumerate(stages)
    )


def test_the_feeding_datasets_own_cardinality() -> None:
    assert batches_of(chain(("Prefetch", 20), ("Batch", 20), ("TensorSlice", 195))) == 20


def test_a_repeated_pass_is_that_of_what_is_repeated() -> None:
    stages = chain(("Batch", FOREVER), ("Repeat", FOREVER), ("Shuffle", 200), ("TensorSlice", 200))
    assert batches_of(stages) == 20


def test_unknown_where_a_stage_expands_its_elements() -> None:
    assert batches_of(chain(("Batch", None), ("FlatMap", None), ("TensorSlice", 3))) is None
    assert batches_of(()) is None


def test_a_line_ends_where_several_sources_meet() -> None:
    zipped = Dataset(id=0, kind="ZipDataset", inputs=(1, 2))
    sources = (Dataset(id=1, kind="RangeDataset"), Dataset(id=2, kind="RangeDataset"))
    assert line_of((zipped, *sources)) == (zipped,)
    assert line_of((zipped, *sources), sources[1]) == (sources[1],)

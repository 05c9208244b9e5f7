"""How many batches one pass over recorded datasets has, and how recorded lines are shown."""

from tfdoctor.facts.run.program import FOREVER, Dataset, DatasetParameters, Places, batches_of, line_of
from tfdoctor.recording.manifest import Manifest
from tfdoctor.terms.verdict import Location


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


def shown(path: str, *command: str, cwd: str = "/data/run") -> str:
    return Places(Manifest(command=command, cwd=cwd).folders).shown(path)


def test_a_file_below_the_folder_of_the_run_is_shown_relative_to_it() -> None:
    assert shown("/data/run/models/net.py", "python", "train.py") == "models/net.py"
    assert Places(("/data/run",))(("/data/run/net.py", 3)) == Location("net.py", 3)


def test_a_script_elsewhere_is_shown_relative_to_its_folder() -> None:
    assert shown("/code/job/train.py", "python", "/code/job/train.py") == "train.py"
    assert shown("/data/job/models/net.py", "python", "../job/train.py") == "models/net.py"


def test_a_file_below_both_is_shown_relative_to_the_folder_of_the_run() -> None:
    assert shown("/data/run/net.py", "python", "/data/train.py") == "net.py"


def test_other_files_keep_their_path() -> None:
    assert shown("/data/runs/net.py", "python", "train.py") == "/data/runs/net.py"
    assert shown("/code/net.py", "python", "-m", "job") == "/code/net.py"
    assert shown("/code/net.py", cwd="") == "/code/net.py"
    assert shown("/net.py", "python", "train.py", cwd="/") == "net.py"

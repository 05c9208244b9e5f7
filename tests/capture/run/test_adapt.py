"""How many batches and examples a layer is adapted to, as far as the dataset says before it is read."""

from tests.capture.run.kit import *

calls: Any = agent.load("run.phases")


class Dataset:
    """What a dataset knows of itself."""

    def __init__(self, batch: int | None, cardinality: int, rank: int | None = 2) -> None:
        self._batch_size = batch
        self.element_spec = SimpleNamespace(shape=SimpleNamespace(rank=rank))
        self.cardinality = lambda: cardinality

    def _inputs(self) -> list[Any]:
        return []


KNOWN = {
    "batches of one": (((Dataset(1, 40_000),), {}), 40_000, 40_000),
    "batches": (((), {"data": Dataset(4096, 10)}), 10, 40_960),
    "no more than asked for": (((Dataset(1, 40_000),), {"steps": 300}), 300, 300),
    "by place": (((Dataset(1, 40_000), None, 300), {}), 300, 300),
    "no more than there are": (((Dataset(1, 200),), {"steps": 300}), 200, 200),
    "of infinitely many": (((Dataset(2, calls.INFINITE),), {"steps": 300}), 300, 600),
    "single texts": (((Dataset(None, 500, rank=0),), {}), 500, 500),
}
UNKNOWN = (
    Dataset(1, -2),  # a generator's: its number is not known
    Dataset(1, calls.INFINITE),
    Dataset(None, 500, rank=1),  # rows, or batches that were made otherwise
    Dataset(None, 500, rank=None),
    [[1.0], [2.0]],
    None,
)


def adapted(*args: object, **kwargs: object) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, *EAGER)
        return calls.Phases(None).adapted((object(), *args), kwargs)


@cases(*KNOWN.values(), ids=[*KNOWN])
def test_batches_and_examples_are_told(given: tuple[Any, Any], steps: int, examples: int) -> None:
    args, kwargs = given
    assert adapted(*args, **kwargs) == {"steps": steps, "examples": examples}


@each(*UNKNOWN)
def test_what_the_dataset_does_not_say_is_unknown(data: object) -> None:
    assert adapted(data) is None

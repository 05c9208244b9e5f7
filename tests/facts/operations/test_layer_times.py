"""Operations by layer."""

from tfdoctor.facts.operations.operation_time import OperationTime, by_layer


def test_operations_are_grouped_by_layer_or_by_their_own_name_the_longest_first() -> None:
    rows = (
        OperationTime(name="c", type="Add", ms=1),
        OperationTime(name="a", type="Mul", ms=1, layer="l"),
        OperationTime(name="b", type="Add", ms=1, layer="l"),
    )
    layers = by_layer(rows)
    assert [(layer.name, len(layer.rows), layer.ms) for layer in layers] == [("l", 2, 2), ("c", 1, 1)]

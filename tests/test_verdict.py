"""Measures and tables of evidence."""

from tests.cases import cases
from tfdoctor.terms.units import Quantity, ms, ratio
from tfdoctor.terms.verdict import Measure, Table


@cases((None, 3), (2, 2), (0, 0))
def test_a_table_has_a_row_for_each_item_up_to_the_most(most: int | None, rows: int) -> None:
    table = Table.of(range(3), ("name", str), ("time", ms), most=most)
    assert table.columns == ("name", "time")
    assert table.rows == tuple((str(number), ms(number)) for number in range(rows))


def test_a_cell_without_a_value_is_unknown() -> None:
    table = Table.of([1, 0], ("value", lambda number: ms(number) if number else None))
    assert table.rows == ((ms(1),), ("unknown",))


@cases((0.25, ratio(0.25)), (0.0, ratio(0.0)), (None, None))
def test_a_share_is_a_ratio_with_its_limit(least: float | None, limit: Quantity | None) -> None:
    measure = Measure.share("share of the step", 0.5, least)
    assert (measure.value, measure.limit) == (ratio(0.5), limit)

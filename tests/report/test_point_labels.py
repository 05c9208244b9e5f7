"""Labels of points: the first points have one where it fits, and none hides a point or another label."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.report.roofline import HEIGHT, MOST, WIDTH, LabelledPoint, label_boxes, mark, meets, positions

shares = st.floats(0.0, 1.0)
points = st.lists(
    st.tuples(shares, shares, st.floats(8.0, 28.0), st.tuples(st.text("x", min_size=1, max_size=36))), max_size=40
)


def test_a_point_alone_has_its_label_where_there_is_room() -> None:
    left, right = ((at, 0.5, 10.0, ("conv2d_1", "Conv2D")) for at in (0.05, 0.95))
    assert positions([left, right]) == ["middle right", "middle left"]


def test_of_points_at_one_place_none_has_a_label_on_another() -> None:
    same = (0.5, 0.5, 10.0, ("conv2d_1", "Conv2D"))
    found = positions([same] * 9)
    assert found[:2] == ["middle right", "middle left"]
    assert found[4:] == [""] * 5


@given(points)
def test_labels_lie_within_the_axes_and_apart(made: list[LabelledPoint]) -> None:
    found = positions(made)
    labels = [
        (at, label_boxes(point)[where]) for at, (point, where) in enumerate(zip(made, found, strict=True)) if where
    ]
    assert len(labels) <= MOST
    assert all(box[0] >= 0 and box[1] <= WIDTH and box[2] >= 0 and box[3] <= HEIGHT for _, box in labels)
    assert not any(meets(one, other) for (_, one), (_, other) in combinations(labels, 2))
    assert not any(meets(box, mark(point)) for own, box in labels for at, point in enumerate(made) if at != own)

"""Repairs work around faults of xprof and change nothing else."""

from typing import Any

from hypothesis import given

from scripts.synthetic.xspace import Plane, Ref, Space
from tests.xspaces import hostile
from tfdoctor.trace import repair


def names(plane: Plane) -> set[str]:
    return {metadata.name for metadata in plane.proto.event_metadata.values()}


def stats(plane: Plane) -> list[dict[str, Any]]:
    """Return the stats of every event by name, as they would be read."""
    known = plane.proto.stat_metadata
    return [
        {known[s.metadata_id].name: getattr(s, s.WhichOneof("value")) for s in event.stats}
        for line in plane.proto.lines
        for event in line.events
    ]


def test_groups_are_forgotten_with_the_lines_derived_from_them() -> None:
    space = Space()
    plane = space.plane("/device:GPU:0")
    plane.line(1, "Stream #1").add("kernel", 0, 1, group_id=3, correlation_id=9)
    plane.line(2, "Steps").add("0", 0, 1, group_id=3)
    repair.remove_groups(space.proto)
    assert [line.name for line in plane.proto.lines] == ["Stream #1"]
    assert stats(plane) == [{"correlation_id": 9}]
    assert "group_id" not in {m.name for m in plane.proto.stat_metadata.values()}


def test_a_tpus_line_of_steps_is_its_own() -> None:
    space = Space()
    plane = space.plane("/device:TPU:0")
    plane.line(1, "Steps").add("0", 0, 1)
    repair.remove_groups(space.proto)
    assert [line.name for line in plane.proto.lines] == ["Steps"]


def test_iterations_become_the_zeroth() -> None:
    space = Space()
    plane = space.plane("/host:CPU")
    plane.line(1, "tf_Compute").add("ExecutorState::Process", 0, 1, id=4, iter_num=3)
    repair.zero_iter_num(space.proto)
    assert stats(plane) == [{"id": 4, "iter_num": 0}]


def test_calls_of_kerass_train_function_become_steps() -> None:
    space = Space()
    plane = space.plane("/host:CPU")
    line = plane.line(1, "python")
    for at in (0, 10):
        line.add("multi_step_on_iterator", at, 5)
    line.add("other", 20, 1)
    assert repair.mark_steps(space.proto) == 2
    assert names(plane) == {"train", "other"}
    assert stats(plane) == [{"_r": 1, "step_num": 0}, {"_r": 1, "step_num": 1}, {}]


def test_marked_steps_are_left_alone() -> None:
    space = Space()
    plane = space.plane("/host:CPU")
    line = plane.line(1, "python")
    line.add("train", 0, 9, _r=1, step_num=7)
    line.add("multi_step_on_iterator", 1, 5)
    repair.repair(space.proto)
    assert names(plane) == {"train", "multi_step_on_iterator"}


def test_saved_groups_stay_where_no_step_can_be_marked_anew() -> None:
    space = Space()
    plane = space.plane("/host:CPU")
    plane.line(1, "python").add("FunctionRun", 0, 9, group_id=3)
    repair.repair(space.proto)
    assert stats(plane) == [{"group_id": 3}]
    plane.line(2, "python").add("train_function", 0, 9, group_id=4)
    repair.repair(space.proto)
    assert "group_id" not in {m.name for m in plane.proto.stat_metadata.values()}


def test_copies_get_the_names_and_sizes_that_xprof_reads() -> None:
    space = Space()
    plane = space.plane("/device:GPU:0")
    line = plane.line(1, "Stream #1")
    line.add("MemcpyH2D", 0, 1, memcpy_details=Ref("kind_src:pinned size:64 dest:0"))
    line.add("Memset", 2, 1, memcpy_details="dest:0")
    repair.rename_copies(space.proto)
    assert names(plane) == {"MemcpyHToD", "Memset"}
    assert stats(plane) == [{"memcpy_details": "num_bytes:64"}, {"memcpy_details": "dest:0"}]


def test_a_reference_to_nothing_is_no_size() -> None:
    space = Space()
    plane = space.plane("/device:GPU:0")
    plane.line(1, "Stream #1").add("MemcpyH2D", 0, 1, memcpy_details="size:1")
    plane.proto.lines[0].events[0].stats[0].ref_value = 2**64 - 1
    repair.rename_copies(space.proto)
    assert stats(plane) == [{"memcpy_details": 2**64 - 1}]


@given(hostile())
def test_no_message_is_beyond_repair(space: Space) -> None:
    repair.repair(space.proto)
    assert space.serialized()

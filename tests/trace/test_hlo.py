"""XLA's programs in a trace."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.synthetic.network import Network
from scripts.synthetic.tpu_program import depth, factors, program
from tests.xspaces import TRACES
from tfdoctor.trace.hlo import DEEPEST, HloProgram, Instruction, SourceLines, parse

NETWORK = Network(depthwise=True)
OPERATIONS = NETWORK.training_step()


def test_the_products_of_a_program_and_their_sizes() -> None:
    parsed = parse(program("cluster", OPERATIONS, "bf16"))
    assert parsed is not None
    by_name = {instruction.name: instruction for instruction in parsed.instructions()}
    for number, op in enumerate(OPERATIONS, start=1):
        (fusion,) = [by_name[f"fusion.{number}"]]
        assert fusion.op_name == op.name
        assert fusion.shapes[0].dims == op.result
        assert fusion.shapes[0].dtype == "bf16"
        assert fusion.shapes[0].tiles == ((8, 128),)
        matmuls = [instruction.matmul for instruction in parsed.inside(fusion) if instruction.matmul]
        assert bool(matmuls) == (op.is_matrix or op.kind == "depthwise")
        for matmul in matmuls:
            assert matmul.depthwise == (op.kind == "depthwise")
            if op.is_matrix:
                assert matmul.k == depth(op)
                assert factors(op)[0] in {
                    s.dims for instruction in parsed.inside(fusion) for s in instruction.shapes
                }


@given(st.binary(max_size=200))
def test_damage_is_no_program_and_no_crash(data: bytes) -> None:
    parse(data)


def test_damage_is_told() -> None:
    assert parse(b"\x0a\xff\xff") is None


def test_reading_a_program_does_not_import_tensorflow() -> None:
    code = (
        "import sys; from tfdoctor.trace.hlo import parse; assert parse(b'') is not None;"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not at hand")
def test_the_corrupt_trace_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfdoctor", "report", str(TRACES / "tpu-v6e-jax-corrupt")]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "is damaged or not a profiler trace (*.xplane.pb): record again." in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def calls(*called: tuple[int, ...]) -> HloProgram:
    """Return a program with a computation of one instruction for each of these, which it calls."""
    made: dict[int, tuple[Instruction, ...]] = {
        number: (Instruction(f"i{number}", "fusion", (), (), calls),) for number, calls in enumerate(called)
    }
    return HloProgram("module", 0, made, donates=False)


@pytest.mark.parametrize(
    ("program", "names"),
    [
        (calls((0,)), "i0 i0"),
        (calls((1,), (0,)), "i0 i1 i0"),
        (calls((1, 1, 2), (2,), ()), "i0 i1 i2"),
        (calls(*((at + 1, at + 1) for at in range(40)), ()), " ".join(f"i{at}" for at in range(41))),
    ],
)
def test_a_computation_is_visited_once(program: HloProgram, names: str) -> None:
    (first,) = program.computations[0]
    assert " ".join(inner.name for inner in program.inside(first)) == names


def test_calls_within_calls_are_followed_to_an_end() -> None:
    deep = calls(*((at + 1,) for at in range(100_000)))
    (first,) = deep.computations[0]
    assert len(list(deep.inside(first))) == DEEPEST + 1


def test_stack_frames_in_a_circle_have_no_line() -> None:
    frame = SimpleNamespace(file_location_id=0)
    ring = [SimpleNamespace(**vars(frame), parent_frame_id=at % 3 + 1) for at in (1, 2, 3)]
    table = SimpleNamespace(stack_frames=ring, file_locations=[], file_names=[])
    lines = SourceLines(table)
    own = SimpleNamespace(stack_frame_id=2, source_file="train.py", source_line=7)
    assert lines.of(own) == lines.of(own) == ("train.py", 7)

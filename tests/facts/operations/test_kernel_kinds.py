"""What kernels' names tell, family by family; what they do not tell stays unknown."""

from scripts.synthetic import kernels as synthetic
from tests.facts.kit import *
from tfdoctor.facts.operations.kernel_kinds import (
    DOCS,
    FAMILIES,
    SEEN,
    kernel,
    multiplies,
    of_operation,
    precision_of,
)
from tfdoctor.facts.timeline.host_events import UNNAMED

KERNELS = Names(__file__, "kernels")
NAMES = [name for names in KERNELS.values() for name in names]

test_what_the_names_of_kernels_tell = KERNELS.test(kernel)


def test_kernels_whose_names_do_not_tell_leave_their_operation_unknown() -> None:
    untold = [(name,) for name in NAMES if kernel(name).on_unit is None]
    assert untold
    assert [names for names in untold if of_operation(names) is not None] == []


@each(synthetic.GEMM, synthetic.MMA_CONVOLUTION, ids=["gemm", "convolution"])
def test_synthetic_kernels_tell_unit_and_precision(table: Mapping[tuple[str, str], str]) -> None:
    found = {key: kernel(name.format("fprop")) for key, name in table.items()}
    assert {key: (one.on_unit, one.precision) for key, one in found.items()} == {
        (gpu, precision): (precision != "fp32", precision) for gpu, precision in table
    }


ON_UNIT, OFF_UNIT = "volta_h884gemm_64x128_ldg8_nn", "volta_sgemm_128x64_nn"
WINOGRAD = "void cudnn::winograd_nonfused::winogradForwardData4x4<__half, __half>"

test_where_an_operation_ran = answers(
    lambda *names: of_operation(names),
    ("nchwToNhwcKernel", ON_UNIT, "splitKreduce_kernel", True),  # one is enough
    ("nchwToNhwcKernel", "void Eigen::internal::EigenMetaKernel<>", None),  # helpers alone do not tell
    (None,),
    (WINOGRAD, "volta_sgemm_128x64_nn", False),  # runs where its products do
    (WINOGRAD, "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", True),
)


def test_what_the_kernels_of_an_operation_tell_together() -> None:
    assert precision_of(("nchwToNhwcKernel", ON_UNIT, "splitKreduce_kernel")) == "fp16"
    assert multiplies(("loop_fusion", "gemm_fusion_dot"))
    assert not multiplies(("loop_fusion", "Im3d2Col.kd", "mystery"))
    assert kernel("mystery") == Kernel()


def test_every_family_names_its_maker_and_source_and_is_met_by_one_of_these_names() -> None:
    """A row that never decides is dead: another one takes its names before it."""
    assert all(family.maker and family.source in (SEEN, DOCS) for family in FAMILIES)
    met = [next((family for family in FAMILIES if family.pattern.search(name)), None) for name in NAMES]
    assert [family.pattern.pattern for family in FAMILIES if family not in met] == []


# What ran a CPU's products.

ON_CPU = Device(DeviceKind.CPU, 1, 1)


def found(*rows: OperationTime) -> OneDnn:
    return OneDnn.measure(Operations(rows), ON_CPU, Framework())


told = Told()

told[found] = {
    "products are sorted by what ran them": (
        matmul(ms=6.0, ran="a:_MklNativeConv2D"),
        matmul(ms=3.0, ran="b:_FusedConv2D", name="b"),
        matmul(ms=1.0, ran="c:Conv2D", name="c"),
    )
}


def compiled(kernel: str) -> OperationTime:
    return OperationTime(name=kernel, type=UNNAMED, ms=1.0, ran=(kernel,))


def test_a_product_that_xla_compiled_is_told_by_its_kernel() -> None:
    row = compiled("Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_MI16x16x16x1")
    assert row.is_matrix
    assert not compiled("loop_fusion").is_matrix


# Whether the matrix unit was used: by FLOPs where they are known, by kernel names else.


def on_gpu(*kernels: tuple[str, float, float, str], record: Any = None, gpu: Any = v100) -> MatrixUnit:
    """A step in which these kernels run, each with its operation."""
    rows = [(name, start, end, {"tf_op": operation}) for name, start, end, operation in kernels]
    plane = gpu(line("Stream #1", *rows))
    return chart(trace([markers(1, 100)], gpus=[plane]), recording(record)).fact(MatrixUnit)


SHAPES = [["float16", [1024, 1024]], ["float16", [1024, 1024]]]
RECORD = {"graphs": [{"operations": [graph_operation("a", "MatMul", SHAPES, SHAPES[:1])]}]}
CONVERTS = ("void cudnn::ops::nchwToNhwcKernel<__half>", 0, 6, "a:Conv2D")
AMPERE = partial(device, compute_cap_major=8, compute_cap_minor=0)

told[on_gpu] = {
    "matrix time is split by what its kernels' names tell": (
        (ON_UNIT, 0, 10, "a:MatMul"),
        (OFF_UNIT, 10, 30, "b:MatMul"),
        ("mystery", 30, 35, "c:Conv2D"),
        (ON_UNIT, 35, 40, "d:Relu"),
    ),
    "conversions beside a product count for neither side": (CONVERTS, (ON_UNIT, 6, 10, "a:Conv2D")),
    # JAX's programs and TensorFlow's clusters name all their kernels alike.
    **{
        f"what XLA compiled is told kernel by kernel: {name}": (
            (ON_UNIT, 0, 4, name),
            ("loop_add_fusion", 4, 6, name),
            ("gemm_fusion_dot", 6, 7, name),
        )
        for name in ("XlaModule:", "cluster_0_1/xla_run:_XlaRun")
    },
}
told[lambda *kernels: on_gpu(*kernels, record=RECORD)] = {
    "utilization is FLOPs over the peak of the busy time": ((ON_UNIT, 0, 1, "a:MatMul"), ("x", 1, 2, "b:Relu")),
    "one of unknown size": ((ON_UNIT, 0, 1, "a:MatMul"), (ON_UNIT, 1, 9, "b:MatMul")),
}


@told
def a_tpu_tells_its_flops_and_its_peak() -> object:
    kinds = {"%fusion": {"hlo_category": "convolution fusion", "flops": 1e9}}
    lines = line("XLA Ops", ("%fusion", 0, 1)), line("Steps", ("0", 0, 2))
    peak = {"device_type_string": "TPU v5 lite", "peak_teraflops_per_second": 100.0}
    return chart(trace([], tpus=[device(*lines, kinds=kinds, **peak)])).fact(MatrixUnit)


OLD = device(line("Stream #1", ("k", 0, 1)), compute_cap_major=6, compute_cap_minor=1)


def unit_of(*threads: Thread, gpu: Machine | None = None) -> MatrixUnit:
    return chart(trace([markers(1, 100), *threads], gpus=[gpu] if gpu else [])).fact(MatrixUnit)


NO_CPU = Device(DeviceKind.GPU, 1, 1)

test_what_is_not_judged = unavailable(
    (lambda: unit_of(line("t", ("a:MatMul", 0, 5))), "CPU"),
    (lambda: unit_of(gpu=OLD), r"6\.1"),
    (lambda: unit_of(gpu=v100()), r"not recorded|no kernel on it"),
    (lambda: unit_of(gpu=v100(line("Stream #1", ("mystery", 0, 9)))), "does not name"),
    (lambda: OneDnn.measure(Operations((matmul(),)), NO_CPU, Framework()), "on a GPU"),
    (lambda: found(OperationTime(name="add", type="AddV2", ms=1.0)), "no matmul"),
)


@told
def a_step_without_matrix_work_is_known_to_have_none() -> object:
    rows = Operations((OperationTime(name="r", type="ReluGrad", ms=5),))
    return MatrixUnit.measure(rows, Hardware(DeviceKind.GPU, "x", "Tensor Core"), NO_CPU, None)


test_kernel_kinds = told.test("kernel_kinds")

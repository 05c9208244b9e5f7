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
from tfdoctor.facts.operations.matmuls import is_eligible
from tfdoctor.facts.timeline.host_events import UNNAMED

KERNELS = Names(__file__, "kernels")
NAMES = [name for names in KERNELS.values() for name in names]

test_what_the_names_of_kernels_tell = KERNELS.test(kernel)


@pytest.mark.parametrize("name", [name for name in NAMES if kernel(name).on_unit is None])
def test_kernels_whose_names_do_not_tell_leave_their_operation_unknown(name: str) -> None:
    assert of_operation((name,)) is None


@pytest.mark.parametrize(("gpu", "precision"), sorted({*synthetic.GEMM, *synthetic.MMA_CONVOLUTION}))
def test_synthetic_kernels_tell_unit_and_precision(gpu: str, precision: str) -> None:
    table = synthetic.GEMM | synthetic.MMA_CONVOLUTION
    for name in {table[gpu, precision], synthetic.GEMM[gpu, precision]}:
        found = kernel(name.format("fprop"))
        assert (found.on_unit, found.precision) == (precision != "fp32", precision)


ON_UNIT, OFF_UNIT = "volta_h884gemm_64x128_ldg8_nn", "volta_sgemm_128x64_nn"
WINOGRAD = "void cudnn::winograd_nonfused::winogradForwardData4x4<__half, __half>"


@cases(
    (("nchwToNhwcKernel", ON_UNIT, "splitKreduce_kernel"), True),  # one is enough
    (("nchwToNhwcKernel", "void Eigen::internal::EigenMetaKernel<>"), None),  # helpers alone do not tell
    ((), None),
    ((WINOGRAD, "volta_sgemm_128x64_nn"), False),  # runs where its products do
    ((WINOGRAD, "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn"), True),
)
def test_where_an_operation_ran(names: tuple[str, ...], *, on_unit: bool | None) -> None:
    assert of_operation(names) is on_unit


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


# What ran a CPU's products, and with which instructions.

ON_CPU = Device(DeviceKind.CPU, 1, 1)


def machine(*flags: str) -> Recording:
    return recording(manifest=manifest(host=HostMachine("vm", "a CPU", flags, 4, 4.0, 2**34)))


def found(*rows: OperationTime, on: Recording | None = None) -> OneDnn:
    return OneDnn.measure(Operations(rows), ON_CPU, on or machine("avx2", "avx512f"), Framework())


def test_products_are_sorted_by_what_ran_them() -> None:
    seen = found(
        matmul(ms=6.0, ran="a:_MklNativeConv2D"),
        matmul(ms=3.0, ran="b:_FusedConv2D", name="b"),
        matmul(ms=1.0, ran="c:Conv2D", name="c"),
    )
    assert (seen.onednn_ms, seen.eigen_fused_ms, seen.other_ms) == (6.0, 3.0, 1.0)
    assert seen.share == pytest.approx(0.6)


@cases(
    (("avx2", "avx512f", "amx_tile"), "bfloat16", "AMX"),
    (("avx2", "avx512f", "amx_tile"), "float32", "AVX-512"),
    (("avx2", "avx512f"), "bfloat16", "AVX-512"),
    (("avx2",), "float32", "AVX2"),
)
def test_the_instructions_follow_from_flags_and_precision(flags: tuple[str, ...], dtype: str, best: str) -> None:
    assert found(matmul(dtype=dtype), on=machine(*flags)).instructions == best


@cases((recording(), "flags; record"), (machine("x"), "distinguishes"))
def test_unknown_flags_leave_the_instructions_unknown(on: Recording, why: str) -> None:
    seen = found(matmul(), on=on)
    assert not seen.instructions
    assert why in seen.why_unknown


# What could run on the matrix unit as it is: by type, dtype and dimensions, on this device.


def gpu(major: int, minor: int, **stats: Any) -> Hardware:
    plane = device(line("Stream #1", ("k", 0, 5)), compute_cap_major=major, compute_cap_minor=minor, **stats)
    return chart(trace([], gpus=[plane])).fact(Hardware)


V100, T4, A100, H100, P4 = gpu(7, 0), gpu(7, 5), gpu(8, 0), gpu(9, 0), gpu(6, 1)
MI300X = gpu(9, 4, device_vendor="AMD")


@cases(
    (V100, "float16", True),
    (V100, "float32", False),
    (V100, "bfloat16", False),
    (T4, "float16", True),
    (T4, "bfloat16", False),
    (A100, "float32", True),
    (A100, "bfloat16", True),
    (A100, "float64", True),
    (gpu(8, 6), "float64", False),
    (H100, "float16", True),
    (MI300X, "float32", True),
    (P4, "float16", False),
    (gpu(7, 5, gpu_device_name="NVIDIA GeForce GTX 1650"), "float16", False),
    (gpu(13, 0), "float16", None),
    (gpu(11, 0, device_vendor="AMD"), "float16", None),
)
def test_by_device_and_type(hardware: Hardware, dtype: str, possible: object) -> None:
    assert is_eligible(matmul(dtype=dtype, weights=(3, 3, 64, 64)), hardware) is possible


@cases(
    (V100, (3, 3, 64, 60), None),
    (V100, (3, 3, 3, 64), None),
    (A100, (3, 3, 64, 60), True),
    (V100, (100, 10), None),
    (V100, (104, 16), True),
    (V100, (None, 64), None),
)
def test_by_dimensions_where_old_libraries_mind(
    hardware: Hardware, weights: tuple[int | None, ...], possible: object
) -> None:
    row = matmul("MatMul" if len(weights) == 2 else "Conv2D", dtype="float16", weights=weights)
    assert is_eligible(row, hardware) is possible


@cases(
    *((kind, "depthwise/batch_norm", True) for kind in ("Conv2DBackpropFilter", "Conv3D", "BatchMatMulV2")),
    *((kind, "depthwise/batch_norm", True) for kind in ("Einsum", "CudnnRNNV3", "MatMul")),
    ("Relu", "conv/MatMul", False),
    ("DepthwiseConv2dNative", "model/layer", False),
)
def test_operations_that_multiply_whatever_they_are_called(kind: str, name: str, *, possible: bool) -> None:
    assert is_eligible(matmul(kind, dtype="float32", name=name), A100) is possible


def test_a_product_that_xla_compiled_is_told_by_its_kernel() -> None:
    name = "Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_MI16x16x16x1"
    row = OperationTime(name=name, type=UNNAMED, ms=1.0, ran=(name,))
    assert row.is_matrix
    assert is_eligible(row, MI300X) is True
    triton = OperationTime(name="t", type=UNNAMED, ms=1.0, ran=("gemm_fusion_dot.kd",))
    assert is_eligible(triton, MI300X) is None
    assert not OperationTime(name="f", type=UNNAMED, ms=1.0, ran=("loop_fusion",)).is_matrix


# Whether the matrix unit was used: by FLOPs where they are known, by kernel names else.


def on_gpu(*kernels: tuple[str, float, float, str], record: Any = None, gpu: Any = v100) -> MatrixUnit:
    """A step in which these kernels run, each with its operation."""
    rows = [(name, start, end, {"tf_op": operation}) for name, start, end, operation in kernels]
    plane = gpu(line("Stream #1", *rows))
    return chart(trace([markers(1, 100)], gpus=[plane]), recording(record)).fact(MatrixUnit)


def test_matrix_time_is_split_by_what_its_kernels_names_tell() -> None:
    on, off = (ON_UNIT, 0, 10, "a:MatMul"), (OFF_UNIT, 10, 30, "b:MatMul")
    found = on_gpu(on, off, ("mystery", 30, 35, "c:Conv2D"), (ON_UNIT, 35, 40, "d:Relu"))
    assert (found.on_unit_ms, found.off_unit_ms, found.unknown_ms) == pytest.approx((10, 20, 5))
    assert (found.matrix_ms, found.busy_ms) == pytest.approx((35, 40))
    assert (found.utilization, found.unit) == (None, "Tensor Core")


def test_utilization_is_flops_over_the_peak_of_the_busy_time() -> None:
    shapes = [["float16", [1024, 1024]], ["float16", [1024, 1024]]]
    record = {"graphs": [{"operations": [graph_operation("a", "MatMul", shapes, shapes[:1])]}]}
    found = on_gpu((ON_UNIT, 0, 1, "a:MatMul"), ("x", 1, 2, "b:Relu"), record=record)
    peak = 1.53e9 * 80 * 1024
    figures = found.peak_flop_s, found.utilization, found.matrix_rate
    assert figures == pytest.approx((peak, 2 * 1024**3 / 2e-3 / peak, 2 * 1024**3 / 1e-3))
    unknown = on_gpu((ON_UNIT, 0, 1, "a:MatMul"), (ON_UNIT, 1, 9, "b:MatMul"), record=record)
    assert unknown.utilization is None  # one of unknown size
    assert unknown.on_unit_ms == pytest.approx(9)


def test_a_tpu_tells_its_flops_and_its_peak() -> None:
    kinds = {"%fusion": {"hlo_category": "convolution fusion", "flops": 1e9}}
    tpu = device(
        line("XLA Ops", ("%fusion", 0, 1)),
        line("Steps", ("0", 0, 2)),
        kinds=kinds,
        device_type_string="TPU v5 lite",
        peak_teraflops_per_second=100.0,
    )
    found = chart(trace([], tpus=[tpu])).fact(MatrixUnit)
    assert found.utilization == pytest.approx(1e9 / 1e-3 / 100e12)
    assert (found.unit, found.on_unit_ms) == ("MXU", None)


OLD = device(line("Stream #1", ("k", 0, 1)), compute_cap_major=6, compute_cap_minor=1)


def unit_of(*threads: Thread, gpu: Machine | None = None) -> MatrixUnit:
    return chart(trace([markers(1, 100), *threads], gpus=[gpu] if gpu else [])).fact(MatrixUnit)


ADD = OperationTime(name="add", type="AddV2", ms=1.0)
NO_CPU = Device(DeviceKind.GPU, 1, 1)

test_what_is_not_judged = unavailable(
    (lambda: unit_of(line("t", ("a:MatMul", 0, 5))), "CPU"),
    (lambda: unit_of(gpu=OLD), r"6\.1"),
    (lambda: unit_of(gpu=v100()), r"not recorded|no kernel on it"),
    (lambda: unit_of(gpu=v100(line("Stream #1", ("mystery", 0, 9)))), "does not name"),
    (lambda: OneDnn.measure(Operations((matmul(),)), NO_CPU, machine("avx2"), Framework()), "on a GPU"),
    (lambda: found(ADD), "no matmul"),
)


def test_a_step_without_matrix_work_is_known_to_have_none() -> None:
    rows = Operations((OperationTime(name="r", type="ReluGrad", ms=5),))
    found = MatrixUnit.measure(
        rows, Hardware(DeviceKind.GPU, "x", "Tensor Core"), Device(DeviceKind.GPU, 1, 1), None
    )
    assert (found.matrix_ms, found.busy_ms) == (0, 5)


def test_conversions_beside_a_product_count_for_neither_side() -> None:
    converts = ("void cudnn::ops::nchwToNhwcKernel<__half>", 0, 6, "a:Conv2D")
    found = on_gpu(converts, (ON_UNIT, 6, 10, "a:Conv2D"))
    assert (found.on_unit_ms, found.off_unit_ms, found.beside_ms) == pytest.approx((4, 0, 6))
    assert dict(found.precisions) == pytest.approx({"fp16": 4})


@each("XlaModule:", "cluster_0_1/xla_run:_XlaRun")
def test_what_xla_compiled_is_told_kernel_by_kernel(name: str) -> None:
    """JAX's programs and TensorFlow's clusters name all their kernels alike."""
    found = on_gpu((ON_UNIT, 0, 4, name), ("loop_add_fusion", 4, 6, name), ("gemm_fusion_dot", 6, 7, name))
    assert (found.on_unit_ms, found.unknown_ms) == pytest.approx((4, 1))
    assert (found.matrix_ms, found.busy_ms) == pytest.approx((5, 7))


def test_a_product_that_could_have_used_the_unit_as_it_is() -> None:
    ampere = partial(device, compute_cap_major=8, compute_cap_minor=0)
    found = on_gpu(("ampere_sgemm_128x64_nn", 0, 4, "a:MatMul"), gpu=ampere)
    assert (found.unused_ms, found.off_unit_ms) == pytest.approx((4, 4))

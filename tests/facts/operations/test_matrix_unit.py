"""Whether the matrix unit was used: by FLOPs where they are known, by kernel names else."""

import pytest

from tests.builders import Machine, Row, chart, device, graph_operation, line, markers, recording, trace, v100
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.matmuls import MatrixUnit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.terms.kinds import DeviceKind

ON = "volta_h884gemm_64x128_ldg8_nn"
OFF = "volta_sgemm_128x64_nn"


def on_gpu(gpu: Machine) -> MatrixUnit:
    return chart(trace([markers(1, 100)], gpus=[gpu])).fact(MatrixUnit)


def kernel(name: str, start: float, end: float, operation: str) -> Row:
    return (name, start, end, {"tf_op": operation})


def test_matrix_time_is_split_by_what_its_kernels_names_tell() -> None:
    found = on_gpu(
        v100(
            line(
                "Stream #1",
                kernel(ON, 0, 10, "a:MatMul"),
                kernel(OFF, 10, 30, "b:MatMul"),
                kernel("mystery", 30, 35, "c:Conv2D"),
                kernel(ON, 35, 40, "d:Relu"),
            )
        )
    )
    assert (found.on_unit_ms, found.off_unit_ms, found.unknown_ms) == pytest.approx((10, 20, 5))
    assert (found.matrix_ms, found.busy_ms) == pytest.approx((35, 40))
    assert found.utilization is None
    assert found.unit == "Tensor Core"


def test_utilization_is_flops_over_the_peak_of_the_busy_time() -> None:
    shapes = [["float16", [1024, 1024]], ["float16", [1024, 1024]]]
    record = {"graphs": [{"operations": [graph_operation("a", "MatMul", shapes, shapes[:1])]}]}
    gpu = v100(line("Stream #1", kernel(ON, 0, 1, "a:MatMul"), kernel("x", 1, 2, "b:Relu")))
    found = chart(trace([markers(1, 100)], gpus=[gpu]), recording(record)).fact(MatrixUnit)
    peak = 1.53e9 * 80 * 1024
    assert found.peak_flop_s == pytest.approx(peak)
    assert found.utilization == pytest.approx(2 * 1024**3 / 2e-3 / peak)
    assert found.matrix_rate == pytest.approx(2 * 1024**3 / 1e-3)


def test_one_product_of_unknown_size_makes_the_utilization_unknown() -> None:
    shapes = [["float16", [1024, 1024]], ["float16", [1024, 1024]]]
    record = {"graphs": [{"operations": [graph_operation("a", "MatMul", shapes, shapes[:1])]}]}
    gpu = v100(line("Stream #1", kernel(ON, 0, 1, "a:MatMul"), kernel(ON, 1, 9, "b:MatMul")))
    found = chart(trace([markers(1, 100)], gpus=[gpu]), recording(record)).fact(MatrixUnit)
    assert found.utilization is None
    assert found.on_unit_ms == pytest.approx(9)


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


def test_a_cpu_is_not_judged_by_its_peak() -> None:
    with pytest.raises(Unavailable, match="CPU"):
        chart(trace([markers(1, 10), line("t", ("a:MatMul", 0, 5))])).fact(MatrixUnit)


def test_a_gpu_without_tensor_cores_is_not_judged() -> None:
    old = device(line("Stream #1", ("k", 0, 1)), compute_cap_major=6, compute_cap_minor=1)
    with pytest.raises(Unavailable, match=r"6\.1"):
        on_gpu(old)


def test_a_gpu_whose_kernels_were_not_recorded_is_not_judged() -> None:
    with pytest.raises(Unavailable, match=r"not recorded|no kernel on it"):
        on_gpu(v100())


def test_nothing_is_said_of_work_that_has_no_name() -> None:
    with pytest.raises(Unavailable, match="does not name"):
        on_gpu(v100(line("Stream #1", ("mystery", 0, 9))))


def test_a_step_without_matrix_work_is_known_to_have_none() -> None:
    rows = Operations((OperationTime(name="r", type="ReluGrad", ms=5),))
    found = MatrixUnit.measure(
        rows, Hardware(DeviceKind.GPU, "x", "Tensor Core"), Device(DeviceKind.GPU, 1, 1), None
    )
    assert (found.matrix_ms, found.busy_ms) == (0, 5)


def test_conversions_beside_a_product_count_for_neither_side() -> None:
    found = on_gpu(
        v100(
            line(
                "Stream #1",
                kernel("void cudnn::ops::nchwToNhwcKernel<__half>", 0, 6, "a:Conv2D"),
                kernel(ON, 6, 10, "a:Conv2D"),
            )
        )
    )
    assert (found.on_unit_ms, found.off_unit_ms, found.beside_ms) == pytest.approx((4, 0, 6))
    assert dict(found.precisions) == pytest.approx({"fp16": 4})


def test_what_xla_compiled_is_told_kernel_by_kernel() -> None:
    """JAX's programs and TensorFlow's clusters name all their kernels alike."""
    for name in ("XlaModule:", "cluster_0_1/xla_run:_XlaRun"):
        found = on_gpu(
            v100(
                line(
                    "Stream #1",
                    kernel(ON, 0, 4, name),
                    kernel("loop_add_fusion", 4, 6, name),
                    kernel("gemm_fusion_dot", 6, 7, name),
                )
            )
        )
        assert (found.on_unit_ms, found.unknown_ms) == pytest.approx((4, 1))
        assert (found.matrix_ms, found.busy_ms) == pytest.approx((5, 7))


def test_a_product_that_could_have_used_the_unit_as_it_is() -> None:
    ampere = device(
        line("Stream #1", kernel("ampere_sgemm_128x64_nn", 0, 4, "a:MatMul")),
        compute_cap_major=8,
        compute_cap_minor=0,
    )
    found = on_gpu(ampere)
    assert (found.unused_ms, found.off_unit_ms) == pytest.approx((4, 4))

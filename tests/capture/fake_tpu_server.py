"""A stand-in for libtpu's RuntimeMetricService, over real sockets; needs grpcio alone.

The messages are encoded by hand, so that the client's own idea of them is not what it is tested by:
MetricResponse{metric=1}, TPUMetric{name=1, metrics=3}, Metric{attribute=1, gauge=3},
Attribute{key=1, value=2}, AttrValue{int_attr=3}, Gauge{as_double=1, as_int=2}.
"""

import struct
from collections.abc import Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager

import grpc

SERVICE = "tpu.monitoring.runtime.RuntimeMetricService"
GIB = 2**30


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)


def _field(number: int, value: float | bytes) -> bytes:
    match value:
        case int():
            return _varint(number << 3) + _varint(value)
        case float():
            return _varint(number << 3 | 1) + struct.pack("<d", value)
        case _:
            return _varint(number << 3 | 2) + _varint(len(value)) + value


def _gauge(device: int, value: float) -> bytes:
    attribute = _field(1, b"device-id") + _field(2, _field(3, device))
    reading = _field(2, value) if type(value) is int else _field(1, value)
    return _field(1, attribute) + _field(3, reading)


def _response(name: str, values: Sequence[int | float]) -> bytes:
    metrics = b"".join(_field(3, _gauge(i, value)) for i, value in enumerate(values))
    return _field(1, _field(1, name.encode()) + metrics)


@contextmanager
def serve(chips: int = 4, duty: float = 37.5, *, wrong: bool = False) -> Iterator[int]:
    """Serve on the loopback interface and yield the port; `wrong` answers are no messages."""
    readings: dict[str, list[float]] = {
        "tpu.runtime.hbm.memory.total.bytes": [16 * GIB] * chips,
        "tpu.runtime.hbm.memory.usage.bytes": [4 * GIB + i for i in range(chips)],
        "tpu.runtime.tensorcore.dutycycle.percent": [duty] * chips,
        "tpu.runtime.hbm.utilization.percent": [12.25] * chips,
    }

    def get(request: bytes, context: grpc.ServicerContext) -> bytes:
        name = request[2 : 2 + request[1]].decode()  # MetricRequest{metric_name=1}
        if name not in readings:
            context.abort(grpc.StatusCode.NOT_FOUND, f"unknown metric {name}")
        return b"\xff\xff\xff" if wrong else _response(name, readings[name])

    handler = grpc.method_handlers_generic_handler(
        SERVICE, {"GetRuntimeMetric": grpc.unary_unary_rpc_method_handler(get)}
    )
    server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[handler])
    bound = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield bound
    finally:
        server.stop(0).wait()

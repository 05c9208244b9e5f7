"""The metric service that libtpu runs inside each process that uses a TPU."""

from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

METHOD = "/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric"
# libtpu's names and ours. The duty cycle is the share of time in which a chip did anything at all.
METRICS = {
    "tpu.runtime.tensorcore.dutycycle.percent": "duty_pct",
    "tpu.runtime.hbm.memory.usage.bytes": "hbm_used_bytes",
    "tpu.runtime.hbm.memory.total.bytes": "hbm_total_bytes",
}

DEADLINE_S = 0.5  # Limit for a listener that never answers; a live one takes below 1 ms

STRING, INT64, DOUBLE, MESSAGE = 9, 3, 1, 11
# The fields that we need of libtpu's tpu_metric_service.proto: name: (number, type, repeated).
FIELDS: Mapping[str, Mapping[str, tuple[int, int | str, bool]]] = {
    "MetricRequest": {"metric_name": (1, STRING, False)},
    "AttrValue": {"string_attr": (1, STRING, False), "int_attr": (3, INT64, False)},
    "Attribute": {"key": (1, STRING, False), "value": (2, "AttrValue", False)},
    "Gauge": {"as_double": (1, DOUBLE, False), "as_int": (2, INT64, False)},
    "Metric": {"attribute": (1, "Attribute", False), "gauge": (3, "Gauge", False)},
    "TPUMetric": {"name": (1, STRING, False), "metrics": (3, "Metric", True)},
    "MetricResponse": {"metric": (1, "TPUMetric", False)},
}


def _messages() -> dict[str, Any]:
    """Return the message classes, made at run time: no package contains them."""
    file = descriptor_pb2.FileDescriptorProto(name="tfdoctor_tpu.proto", package="tfdoctor_tpu")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, repeated) in fields.items():
            added = message.field.add(name=field, number=number, label=3 if repeated else 1)
            added.type = kind if isinstance(kind, int) else MESSAGE  # type: ignore[assignment]  # an enum of ints
            if isinstance(kind, str):
                added.type_name = f".tfdoctor_tpu.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptors = (pool.FindMessageTypeByName(f"tfdoctor_tpu.{name}") for name in FIELDS)
    return {kind.name: message_factory.GetMessageClass(kind) for kind in descriptors}


MESSAGES = _messages()


class Runtime:
    """A client of one process's metric service."""

    def __init__(self, port: str) -> None:
        self.port, self.failures, self.error = port, 0, ""
        # Otherwise gRPC uses the proxy for localhost too.
        options = [("grpc.enable_http_proxy", 0)]
        self.channel = grpc.insecure_channel(f"localhost:{port}", options=options)
        self.call: Any = self.channel.unary_unary(
            METHOD,
            request_serializer=lambda name: MESSAGES["MetricRequest"](metric_name=name).SerializeToString(),
            response_deserializer=MESSAGES["MetricResponse"].FromString,
        )

    def read(self) -> dict[int, dict[str, float]]:
        """Return {device: {our name: value}}; only the values before the first error."""
        values: dict[int, dict[str, float]] = {}
        for name, ours in METRICS.items():
            try:
                response = self.call(name, timeout=DEADLINE_S)
            except grpc.RpcError as error:
                self.failures, self.error = self.failures + 1, error.code().name
                return values
            for metric in response.metric.metrics:
                if value := _value(metric):
                    device, number = value
                    values.setdefault(device, {})[ours] = number
        self.failures, self.error = 0, ""
        return values


def _value(metric: Any) -> tuple[int, float] | None:  # noqa: ANN401  # a message made at run time
    """Return (device, value) of one gauge, or None if its value is not a number."""
    attribute, gauge = metric.attribute.value, metric.gauge
    device = attribute.int_attr
    if attribute.HasField("string_attr") and attribute.string_attr.isdigit():
        device = int(attribute.string_attr)
    if gauge.HasField("as_double"):
        return device, gauge.as_double
    return (device, gauge.as_int) if gauge.HasField("as_int") else None

"""Whether a report names the lines of a fault, and whether what it advises there is the right kind of change.

*Named*: a line of the fault is in a finding of a warning or more, or among the largest places without a change.
*Explained*: such a finding, or another one at the line, advises a change of the fault's class. The writer of a case
declares the class; that of a rule is here, by what its remedies do.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.strangers.cases import Case

NEAR = 2
"""Lines between a place and the fault's: a call may span several."""

LOUD = frozenset({"warning", "critical"})

CLASSES: Mapping[str, frozenset[str]] = {
    rule: frozenset(classes.split(", "))
    for classes, rules in {
        "hoist, keep": "repeated-call uncached-preprocessing cache-order",
        "hoist, compile once": "repeated-conversion",
        "hoist": "driver-start frozen-layers",
        "hoist, cheaper form": "repeated-computation",
        "hoist, keep, compile once": "worker-start",
        "less often, hoist, compile, batch, cheaper form": "between-steps",
        "less often, hoist, beside": "step-outlier",
        "less often, less data, hoist, batch, keep, cheaper form": "epoch-boundary",
        "less often": "frequent-saving host-sync",
        "less often, batch, compile, cheaper form": "slow-evaluation",
        "batch, compile, hoist": "slow-prediction",
        "batch, hoist, less often, compile": "slow-call",
        "batch": "small-batch per-element-map serial-batch kernel-launch-bound column-slices fragmented-matmul"
        " optimizer-overhead small-replica-batch recurrent-loop unvectorized-operation",
        "batch, keep, parallel, cheaper form, bounded, compile": "slow-preparation",
        "keep, less data, beside": "long-call",
        "parallel": "sequential-map serial-reads disabled-autotune thread-limit serial-transfer busy-workers",
        "parallel, keep, cheaper form, beside, hoist, less data": "python-input",
        "parallel, cheaper form": "input-bound starved-cpu",
        "beside": "missing-prefetch",
        "keep, less data": "small-files compressed-records slow-storage window-datasets",
        "compile": "eager-step debug-checks device-placement",
        "compile once": "retracing recompilation new-shapes kernel-compilation",
        "compile once, batch": "slow-start",
        "compile once, bounded": "tuning-loop growing-step growing-memory out-of-memory",
        "less data": "late-shrink oversized-decode padding-waste late-gather zero-factor unused-gradients"
        " shuffle-order sample-weight-scan",
        "cheaper form, batch, less data, hoist": "hot-operation",
        "cheaper form, less data": "cheaper-operation broadcast-cost embedding-gradient sparse-operand"
        " layout-change slow-random"
        " depthwise-convolution grouped-convolution max-pool-gradient slow-cudnn-path deterministic-operations",
        "numbers": "float32-matmul float64-compute float16-on-cpu float16-without-tensor-cores loss-scaling"
        " unaligned-dimension unfused-batch-norm unfused-elementwise idle-matrix-unit",
    }.items()
    for rule in rules.split()
}


def naming(case: Case, report: Mapping[str, Any]) -> list[str]:
    """Return the rules of findings of a warning or more that name a line of the fault."""
    return [one["rule"] for one in _findings(report) if one["severity"] in LOUD and _at(case, one)]


def named(case: Case, report: Mapping[str, Any]) -> bool:
    """Say whether a report names a line of the fault, loudly enough to be read."""
    return bool(naming(case, report)) or _at(case, report.get("large", []))


def explained(case: Case, report: Mapping[str, Any]) -> bool:
    """Say whether a finding at a line of the fault advises a change of its class."""
    right = frozenset(case.classes)
    return any(_at(case, one) for one in _findings(report) if right & _advised(one))


def _advised(finding: Mapping[str, Any]) -> frozenset[str]:
    """Return the classes of what a finding advises: long-call has code where it knows no cheaper form."""
    formed = finding["rule"] == "long-call" and not finding["remedies"][0]["code"]
    return frozenset({"cheaper form"}) if formed else CLASSES.get(finding["rule"], frozenset())


def _findings(report: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (one for one in report["results"] if one["outcome"] == "finding" and one["topic"] != "recording")


def _at(case: Case, node: object) -> bool:
    """Say whether a place anywhere in a part of a report is one of the fault's."""
    if isinstance(node, Mapping):
        line, path = node.get("line"), node.get("path")
        near = isinstance(line, int) and any(abs(line - fault) <= NEAR for fault in case.where)
        same = not case.where_file or str(path).rpartition("/")[2] == case.where_file.rpartition("/")[2]
        return (near and path is not None and same) or any(_at(case, one) for one in node.values())
    return isinstance(node, list | tuple) and any(_at(case, one) for one in node)

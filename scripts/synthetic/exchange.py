"""How long the replicas of one machine take to sum their gradients."""

from scripts.synthetic.run import Run
from scripts.synthetic.xspace import MS

BUS = {"v100": 130e9, "t4": 10e9, "a100": 230e9, "h100": 360e9}
"""Bytes per second of NCCL's all-reduce, as nccl-tests counts them ("busbw"): over NVLink within a DGX-1V,
DGX A100 and DGX H100, over PCIe 3.0 x16 between T4s (nccl-tests, doc/PERFORMANCE.md; NVIDIA's blog on NCCL)."""

LATENCY = 20e-6
"""Seconds that the smallest all-reduce of a few GPUs takes."""

GRADIENT = 4
"""Bytes of a gradient: variables stay float32 under a mixed policy."""


def all_reduce_ms(run: Run) -> float:
    """Return the ms of an all-reduce of the blocks' gradients; a ring sends 2 (n - 1) / n of the bytes."""
    sent = 2 * (run.replicas - 1) / run.replicas * run.network.weights * GRADIENT
    return round((LATENCY + sent / BUS[run.device]) * 1e9) * 1000 / MS

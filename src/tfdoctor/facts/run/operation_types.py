"""What types of operations there are, under all the names that they run by."""

import re

REWRITTEN = re.compile(r"^_(?:Mkl)?(?:Native)?(?:Fused(?=Conv|MatMul|Depthwise|BatchMatMul))?")
"""What grappler and oneDNN put before an operation's type: _MklNativeFusedConv2D is a Conv2D."""

RENAMED = {
    "FusedBatchNormEx": "FusedBatchNormV3",
    "Conv2DWithBias": "Conv2D",
    "Conv2DBackpropFilterWithBias": "Conv2DBackpropFilter",
}
"""Names that a fused operation has for itself."""

CONVOLUTIONS = frozenset(
    [f"Conv2D{end}" for end in ("", "BackpropInput", "BackpropFilter")]
    + [f"Conv2D{end}" for end in ("BackpropInputV2", "BackpropFilterV2")]
    + [f"Conv3D{end}" for end in ("", "BackpropInput", "BackpropFilter")]
    + [f"Conv3D{end}" for end in ("BackpropInputV2", "BackpropFilterV2")]
)
MATMULS = frozenset(
    ["MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "XlaDotV2"]
)
RECURRENT = frozenset(
    f"CudnnRNN{end}" for end in ("", "V2", "V3", "Backprop", "BackpropV2", "BackpropV3")
)
MATRIX_TYPES = CONVOLUTIONS | MATMULS | RECURRENT
"""Operations that a matrix unit runs."""

COMPILED = frozenset(
    [
        "XlaRun",
        "XlaLaunch",
        "XlaLaunchV2",
        "XlaCompileAndRun",
        "PartitionedCall",
        "StatefulPartitionedCall",
    ]
)
"""Operations that stand for a whole program: on a GPU all its kernels bear their name."""

DEPTHWISE = frozenset(
    f"DepthwiseConv2dNative{end}" for end in ("", "BackpropInput", "BackpropFilter")
)
"""Convolutions of each channel alone."""


def base_type(kind: str) -> str:
    """Return the type as the user's graph had it: _MklNativeFusedConv2D ran for a Conv2D."""
    plain = REWRITTEN.sub("", kind)
    return RENAMED.get(plain, plain)

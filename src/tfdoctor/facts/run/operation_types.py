"""The types of operations, under all the names that they run by."""

import re

REWRITTEN = re.compile(r"^_(?:Mkl)?(?:Native)?(?:Fused(?=Conv|MatMul|Depthwise|BatchMatMul))?")
"""The prefix that grappler and oneDNN add to an operation's type: _MklNativeFusedConv2D is a Conv2D."""

RENAMED = {
    "FusedBatchNormEx": "FusedBatchNormV3",
    "Conv2DWithBias": "Conv2D",
    "Conv2DBackpropFilterWithBias": "Conv2DBackpropFilter",
}
"""Types of fused operations that have names of their own."""

GRADIENTS = ("", "BackpropInput", "BackpropFilter", "BackpropInputV2", "BackpropFilterV2")
CONVOLUTIONS = frozenset(f"Conv{number}D{end}" for number in (2, 3) for end in GRADIENTS)
MATMULS = frozenset(["MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "XlaDotV2"])
RECURRENT = frozenset(f"CudnnRNN{end}" for end in ("", "V2", "V3", "Backprop", "BackpropV2", "BackpropV3"))
MATRIX_TYPES = CONVOLUTIONS | MATMULS | RECURRENT
"""Operations that a matrix unit runs."""

COMPILED = frozenset(
    ["XlaRun", "XlaLaunch", "XlaLaunchV2", "XlaCompileAndRun", "PartitionedCall", "StatefulPartitionedCall"]
)
"""Operations that run a whole program: on a GPU all kernels of the program have this name."""

DEPTHWISE = frozenset(f"DepthwiseConv2dNative{end}" for end in ("", "BackpropInput", "BackpropFilter"))
"""Convolutions of each channel alone."""


def base_type(kind: str) -> str:
    """Return the type in the user's graph: Conv2D for _MklNativeFusedConv2D."""
    plain = REWRITTEN.sub("", kind)
    return RENAMED.get(plain, plain)

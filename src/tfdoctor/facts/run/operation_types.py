"""The types of operations, under all the names that they run by, and what each kind of them does."""

import re

from tfdoctor.trace.names import ASSIGN, UPDATE

# The prefix that grappler and oneDNN add to an operation's type: _MklNativeFusedConv2D is a Conv2D.
REWRITTEN = re.compile(r"^_(?:Mkl)?(?:Native)?(?:Fused(?=Conv|MatMul|Depthwise|BatchMatMul))?")

# Types of fused operations that have names of their own.
RENAMED = {
    "FusedBatchNormEx": "FusedBatchNormV3",
    "Conv2DWithBias": "Conv2D",
    "Conv2DBackpropFilterWithBias": "Conv2DBackpropFilter",
}

GRADIENTS = ("", "BackpropInput", "BackpropFilter", "BackpropInputV2", "BackpropFilterV2")
CONVOLUTIONS = frozenset(f"Conv{number}D{end}" for number in (2, 3) for end in GRADIENTS)
MATMULS = frozenset(["MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "XlaDotV2"])
RECURRENT = frozenset(f"CudnnRNN{end}" for end in ("", "V2", "V3", "Backprop", "BackpropV2", "BackpropV3"))
MATRIX_TYPES = CONVOLUTIONS | MATMULS | RECURRENT  # Operations that a matrix unit runs
# Operations that run a whole program: on a GPU all kernels of the program have this name.
COMPILED = frozenset(
    ["XlaRun", "XlaLaunch", "XlaLaunchV2", "XlaCompileAndRun", "PartitionedCall", "StatefulPartitionedCall"]
)
# Convolutions of each channel alone.
DEPTHWISE = frozenset(f"DepthwiseConv2dNative{end}" for end in ("", "BackpropInput", "BackpropFilter"))
CONSTANT = frozenset(["Const", "HostConst"])  # Operations without inputs whose result is always the same
SHAPES = frozenset(["Shape", "ShapeN", "Rank", "Size"])  # Operations that use only the shape of their input
# Operations that pass on the values of their first input, at most in another shape or type.
PASSING = frozenset(["Identity", "Reshape", "Cast", "ExpandDims", "Squeeze", "StopGradient"])
REPEATS = frozenset(["Tile", "BroadcastTo"])

# Operations that compute each value of one of each operand's, and broadcast these.
BROADCASTING = frozenset(
    ["AddV2", "Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference", "Pow", "SelectV2",
     "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "LogicalAnd"]
)  # fmt: skip

# Operations on each value by itself: they give the same result before a repetition as after it.
UNARY = frozenset(
    ["Abs", "Elu", "Erf", "Exp", "Expm1", "LeakyRelu", "Log", "Log1p", "Neg", "Reciprocal", "Relu", "Relu6",
     "Rsqrt", "Selu", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Square", "Tanh"]
)  # fmt: skip

# Operations on values one by one that fill steps, and that XLA fuses.
FUSIBLE = frozenset(
    ["AddV2", "Add", "AddN", "Sub", "Mul", "RealDiv", "Neg", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Pow",
     "Maximum", "Minimum", "Select", "SelectV2", "Cast", "Relu", "Relu6", "Elu", "Selu", "Sigmoid", "Tanh",
     "Softplus", "Erf", "LeakyRelu", "ReluGrad", "Relu6Grad", "EluGrad", "SigmoidGrad", "TanhGrad", "LeakyReluGrad",
     "RsqrtGrad", "SqrtGrad", "SquaredDifference", "BiasAdd", "GreaterEqual", "Greater", "Less", "LessEqual",
     "DivNoNan"]
)  # fmt: skip

# Operations that read a variable, or are one; searched, as for names that grappler extends.
READS = re.compile(
    r"(?:Read(?:(?!Read)\w)*VariableOp|ResourceGather(?:(?!ResourceGather)\w)*|VarHandleOp|VariableV2)$"
)

# Operations that change the variable that is their first input: assignments, and an optimizer's own.
UPDATES = re.compile(
    rf"{UPDATE.pattern}|{ASSIGN.pattern}|AssignVariableXla\w+|(?:Resource)?Scatter(?:Mul|Div|Min|Max)"
    r"|(?:Resource)?StridedSliceAssign"
)

# Those of them that are a whole step of an optimizer for a variable.
FUSED_UPDATES = re.compile(r"(?:Resource)?(?:Sparse)?Apply(?!Tensor)\w+")
# Operations whose results differ from step to step without an input that does; searched.
RANDOM = re.compile(
    r"Random|Rng|Multinomial|Multivariate|Categorical|Shuffle|SampleDistorted|Bernoulli|TruncatedNormal"
)
# Loops as the program builds them; the graph that runs has their bodies in place.
WHILES = frozenset(["While", "StatelessWhile"])
# Operations whose work is in another graph; searched.
CALLS = re.compile(r"PartitionedCall|While|If$|Case$|Xla(?:Run|Launch|CompileAndRun)")
# Operations whose inputs do not say what they depend on: they run graphs or Python, or read a clock; searched.
OPAQUE = re.compile(rf"{CALLS.pattern}|PyFunc|Timestamp")


def base_type(kind: str) -> str:
    """Return the type in the user's graph: Conv2D for _MklNativeFusedConv2D."""
    plain = REWRITTEN.sub("", kind)
    return RENAMED.get(plain, plain)

"""Syntax of Python that a graph keeps as it is, whatever its parts are."""

import libcst as cst

# Syntax without a meaning of its own.
PUNCTUATION = (
    cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline, cst.Comma,
    cst.Semicolon, cst.Colon, cst.Dot, cst.AssignEqual, cst.LeftParen, cst.RightParen, cst.LeftSquareBracket,
    cst.RightSquareBracket, cst.LeftCurlyBrace, cst.RightCurlyBrace,
)  # fmt: skip

# Syntax without an effect of its own; its parts are checked.
PLAIN = (
    cst.BaseNumber, cst.SimpleString, cst.Ellipsis, cst.Tuple, cst.List, cst.Element, cst.Dict, cst.DictElement,
    cst.Subscript, cst.SubscriptElement, cst.Index, cst.Slice, cst.BinaryOperation, cst.BaseBinaryOp,
    cst.UnaryOperation, cst.Minus, cst.Plus, cst.Arg, cst.BaseAugOp, cst.AssignTarget, cst.AsName, cst.WithItem,
    cst.IndentedBlock, cst.SimpleStatementLine, cst.Return, cst.Pass, cst.Expr, cst.Del,
)  # fmt: skip

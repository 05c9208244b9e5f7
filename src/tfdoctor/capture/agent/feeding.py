"""What the function that trains is given, noted at two calls of the window, and which lines make it."""

import sys

from .journal import quietly
from .stack import user_file


class Fed:
    """The arguments of the tf.function that trains."""

    def __init__(self, window):
        self.code = self.told = self.first = None
        self.wanted = False
        self.note = quietly("arguments", window.log)(self._note)

    def begin(self):
        """A window opens: the next two calls are of interest."""
        self.code = self.told = self.first = None
        self.wanted = True

    def _note(self, args, kwargs):
        """Note what a call is given, and at the second call whether that was made anew."""
        given = [each for each in (*args, *kwargs.values()) if _is_array(each)]
        if self.first is None:
            self.first = given
            frame = _user_frame(sys._getframe(1))
            if frame is not None:
                self.code = frame.f_code
                at = [user_file(frame.f_code.co_filename), frame.f_lineno]
                self.told = {"at": at, "arguments": [_kind(each) for each in given]}
            return
        self.wanted = False
        if self.told is not None:
            for number, known in enumerate(self.told["arguments"][: len(given)]):
                known["anew"] = given[number] is not self.first[number]
        self.first = None

    def makers(self):
        """Return the (first, last) lines of the loop that make the arguments; None is unknown."""
        if self.told is None:
            return None
        import ast

        path, line = self.told["at"]
        try:
            with open(path, encoding="utf-8") as file:
                return making(ast.parse(file.read()), line)
        except (OSError, SyntaxError, ValueError):
            return None


def _is_array(value):
    return hasattr(value, "dtype") and len(getattr(value, "shape", ())) > 0


def _kind(value):
    kind = "numpy" if type(value).__module__ == "numpy" else "tensor"
    return {"kind": kind, "dtype": str(value.dtype), "shape": [int(n) for n in value.shape]}


def _user_frame(frame):
    while frame is not None and user_file(frame.f_code.co_filename) is None:
        frame = frame.f_back
    return frame


def making(tree, line):
    """Return the lines of a loop's statements that the arguments of the call at a line come from.

    None where no loop holds the call. Statements count that assign what the call, or another such
    statement, reads.
    """
    import ast

    loops = [one for one in ast.walk(tree) if isinstance(one, (ast.For, ast.While))]
    loop = max((one for one in loops if _holds(one, line)), key=_begin, default=None)
    if loop is None:
        return None
    kinds = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
    simple = [one for one in ast.walk(loop) if isinstance(one, kinds)]
    call = next((one for one in simple if _holds(one, line)), None)
    if call is None:
        return None
    chosen, wanted = _sources(call, simple)
    found = [(one.lineno, one.end_lineno) for one in chosen]
    if isinstance(loop, ast.For) and _names(loop.target, ast.Store) & wanted:
        found.append((loop.lineno, loop.iter.end_lineno))
    return found


def _sources(call, simple):
    """Return a statement with all that it depends on, and the names they read."""
    import ast

    chosen, wanted = [call], _names(call, ast.Load)
    grown = True
    while grown:
        more = [one for one in simple if one not in chosen and _names(one, ast.Store) & wanted]
        chosen += more
        wanted = wanted.union(*(_names(one, ast.Load) for one in more))
        grown = bool(more)
    return chosen, wanted


def _begin(statement):
    return statement.lineno


def _holds(statement, line):
    return statement.lineno <= line <= statement.end_lineno


def _names(tree, context):
    import ast

    return {
        one.id
        for one in ast.walk(tree)
        if isinstance(one, ast.Name) and isinstance(one.ctx, context)
    }

"""The model of a file: what is no Python, where nodes are, and which of the places that bind a name one sees."""

import warnings

from tests.kit import *
from tfdoctor.source_code.late_use import LateUse
from tfdoctor.source_code.splice import Declined
from tfdoctor.source_code.tree import SyntaxTree


@each(
    *("print 'two'", "{% if deep %}\nx = 1\n", "x = (", "def f(:", "a\0b", "\ud800 = 1", "(" * 999),
    "-" * 99_999 + "1",
)
def test_what_is_no_python_is_declined(text: str) -> None:
    with pytest.raises(Declined, match="cannot be parsed"):
        SyntaxTree(text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@each(
    *("", "é = '\N{GRINNING FACE}'; ", "if x:\n\t\x0c\t", "x = '''\nü'''; ", "y = \\\n  1; "),
    *("match x:\n  case [a]: ", "@d(1)\nasync def f(): "),
)
def test_a_call_is_where_it_is_written(before: str, end: str) -> None:
    text = f"{before}d.map(f).batch(2)\n".replace("\n", end)
    module = SyntaxTree(text)
    (call,) = module.methods("batch")
    assert module.written(call) == "d.map(f).batch(2)"
    assert isinstance(call.func, ast.Attribute)
    assert text[module.name_at(call.func) :].startswith("batch(2)")


@each("f'{d.batch(2)}'", "f'''\n {d:{w}} {d.batch(2)!r:>{n}}'''", "'a' f'{d.batch(2)}'")
def test_code_in_an_f_string_is_seen_and_not_changed(text: str) -> None:
    """Trap: Python 3.11 gives it other places than it is written at."""
    module = SyntaxTree(f"x = {text}\n")
    (call,) = module.methods("batch")
    assert (module.covers(call, 1), module.written(call)) == (True, "d.batch(2)")
    with pytest.raises(Declined, match="f-string on line 1"):
        module.replaced(call, "d")


LATE = (
    *("import a\nfit()", "import a\nfit()\na.b()", "import a\na.b()\nfit()", "import a.b as c, d\nd()\nfit()"),
    "from a import b, c\ndef f():\n    b()\ndef g():\n    fit()\nfor x in y:\n    g()\n    f()",
    "from a import b\ndef f():\n    b()\ndef g():\n    fit()\n    f()\ng()",
    *("import a\nclass C:\n    def f(self):\n        a.b()\nfit()", "import a\nfit(C)\ndef f(): a.b()\nf()"),
    *("import a\nclass C:\n    def f(self):\n        a.b()\nfit(C)", "import a\n@d\ndef f(): a.b()\nfit()"),
    *("import a\nx = lambda: a.b\nfit()", "import a\ngetattr(m, 'f')\nfit()\ndef f(): a.b()", "from a import *"),
    *("def f():\n    import a\nfit()", "from .a import b\nfit()", "import a\ndef f(x=a.b): ...\nfit()"),
)


def test_where_a_script_first_uses_what_it_imports(golden: Callable[[str, str], None]) -> None:
    modules = {text: SyntaxTree(text) for text in LATE}
    used = {text: LateUse(one, [call.lineno for call in one.calls("fit")]) for text, one in modules.items()}
    told = (f"{text}\n-> {one.clause('a') or 'early, or unclear'}\n" for text, one in used.items())
    golden("late_use.txt", "\n".join(told))


NAMES = (
    *("x = 1\nx = 2\nprint(x)", "x = 1\ndef f():\n    x = 2\nprint(x)", "x = 1\ndef f(x):\n    print(x)"),
    *("x = 1\ndef f(x=3, *, y=print(x)): ...", "x = 1\n@print(x)\ndef f(x): ...", "x = 1\nlambda x: print(x)"),
    *("x = 1\nlambda y=print(x): 0", "x = 1\nclass C:\n    x = 2\n    def f(self):\n        print(x)"),
    *("x = 1\nclass C:\n    x = 2\n    print(x)", "x = 1\n[print(x) for x in y]", "x = 1\n[x for x in print(x)]"),
    *("[(x := y) for y in z]\nprint(x)", "x = 1\ndef f():\n    global x\n    x = 2\nprint(x)"),
    "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n    print(x)",
    *("import a.x as x\nfrom b import x\nimport x.y\nprint(x)", "def x(): ...\nclass x: ...\nprint(x)"),
    "try: ...\nexcept E as x: ...\nwith a as x: ...\nfor x in y: ...\nprint(x)",
    *("match y:\n    case [x, *_]: ...\n    case {'a': 1, **x}: ...\nprint(x)", "print(x)"),
)


def test_a_name_is_bound_where_python_binds_it(golden: Callable[[str, str], None]) -> None:
    lines = []
    for text in NAMES:
        module = SyntaxTree(text)
        (name,) = module.calls("print")[0].args
        assert isinstance(name, ast.Name)
        bound = sorted(getattr(node, "lineno", 0) for node in module.bound(name))
        lines += [*text.splitlines(), f"  bound on lines {bound}", ""]
    golden("tree.txt", "\n".join(lines))


@cases(("False", 1), ("y", 1), ("y + 1", 0), ("*y", 0))
def test_a_parameter_stands_for_what_the_only_call_gives_in_each_turn(given: str, known: int) -> None:
    module = SyntaxTree(f"def f(x):\n    print(x)\nfor _ in z:\n    f({given})\n")
    (name,) = module.calls("print")[0].args
    assert isinstance(name, ast.Name)
    assert [module.written(source.value) for source in module.sources(name)] == [given] * known


def test_warnings_of_the_text_are_not_shown_and_others_stay_shown_once() -> None:
    """A regression: a change of Python's filters has it show each warning of the user's program once more."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(2):
            warnings.warn("of the program", stacklevel=1)
            SyntaxTree('x = "\\d"')
    assert [str(one.message) for one in shown] == ["of the program"]

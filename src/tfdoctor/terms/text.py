"""Names and sentences as visible characters, so that none hides, reorders or breaks a line."""

import re
import unicodedata

NAME_LIMIT = 160  # Longer names are shortened in the middle: C++ symbols reach 10 kB, and their ends matter most
PROSE_LIMIT = 1200  # Characters of a sentence of a rule, including names
BLOCK_LIMIT = 20_000  # Characters of a snippet or a traceback
PROGRAMS = frozenset({"tfdoctor", "xprof", "nvidia"})  # Names in lowercase, even at the start of a sentence
# Characters of a text of a recording that are read: no pattern meets a longer one, and no number in it has more
# digits than Python converts.
LONGEST = 4096

_LINE_BREAKS = re.compile(r"(?<!\s)\s*[\r\n\t\v\f\x85\u2028\u2029]\s*")
# Between two words, none of them a number: a number stays with its unit and its interval.
_GAP = re.compile(r"(?<=[^\d\s]) (?=[^\d\s(%±])")
_JOINT = re.compile(r"(?<=\w)[./_](?=[A-Za-z])(?!py\b)")  # Between two parts of a name or of a path

# Characters that command a terminal, reorder or hide text, or are no character; not the ends of lines.
_HIDDEN = re.compile(
    "\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

_COLOR = r"\x1b\[[\d;]{0,40}m"
_HIDDEN_BUT_COLORS = re.compile(rf"(?!{_COLOR})(?:{_HIDDEN.pattern})")

_MARKS = r"(?<=#)#(?=\w*\[)"
# What CI runners obey in a line of output: GitHub's ``::error::`` at its start, and anywhere in it ``##[group]`` as
# well as ``##vso[`` (Azure) and ``##teamcity[``. GitLab's sections begin with a control character.
_COMMANDS = re.compile(rf"^(?:[^\S\n]|{_COLOR})*:(?=:)|{_MARKS}", re.MULTILINE)
# Unicode categories: controls, direction marks, unassigned, private, surrogates, separators.
_INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}


def name(text: str, limit: int = NAME_LIMIT) -> str:
    """Return one line of visible characters, control and direction marks as escapes."""
    return shorten(_on_one_line(text), limit)


def cut(text: str) -> str:
    """Return a text as it is read from a recording, without its middle where it is too long for any name."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 2 :]}"


def as_read(name: str) -> str:
    """Return a name as it is read from a recording: on one line, with an end."""
    return cut(name) if name.isprintable() else _LINE_BREAKS.sub(" ", cut(name))


def legible(text: str) -> str:
    """Return a text, of one or several lines, with the characters that hide as escapes."""
    return text if text.isprintable() else _HIDDEN.sub(_escaped, text)


def uncommanding(text: str) -> str:
    """Return output in which no line is a command to a CI runner: a backslash parts its sign."""
    return _COMMANDS.sub(lambda sign: f"{sign[0][:-1]}\\{sign[0][-1]}", text)


def uncommanding_json(text: str) -> str:
    """Return the same JSON without such signs; no line of it begins with a text."""
    return re.sub(_MARKS, r"\\u0023", text)


def harmless(text: str, *, colored: bool = False) -> str:
    """Return output that commands neither a terminal nor a CI runner, apart from its colors."""
    hidden = _HIDDEN_BUT_COLORS if colored else _HIDDEN
    return uncommanding(text if text.isprintable() else hidden.sub(_escaped, text))


class Drawn(str):
    """Output of ours that colors, moves the cursor or commands a runner: what it names was made harmless before."""

    __slots__ = ()


def prose(text: str) -> str:
    """Return a few sentences on one line; a word in them is no longer than a name may be."""
    words = (shorten(word, NAME_LIMIT) for word in _on_one_line(text).split(" "))
    return shorten(" ".join(words), PROSE_LIMIT)


def capitalized(text: str) -> str:
    """Return prose that starts like a sentence; a name at its start keeps its spelling."""
    words = prose(text)
    first = words.partition(" ")[0]
    is_word = first.isalpha() and first.islower() and first not in PROGRAMS
    return words[0].upper() + words[1:] if is_word else words


def sentence(text: str) -> str:
    """Return prose that starts and ends like a sentence."""
    words = capitalized(text)
    return words if not words or words[-1] in ".!?…" else f"{words}."


def clauses(*sentences: str) -> str:
    """Return sentences that begin with a common word as one sentence; "" of none."""
    first, *others = sentences or ("",)
    ended = [one.rstrip(".") for one in (first, *(one[:1].lower() + one[1:] for one in others))]
    return f"{'; '.join(ended)}." if first else ""


def block(text: str) -> str:
    """Return code or a traceback: its line breaks and indents stay, nothing else invisible does."""
    lines = re.split(r"\r\n|\r|\n", shorten(text.expandtabs(4), BLOCK_LIMIT))
    return "\n".join(_visible(line).rstrip() for line in lines).strip("\n")


def shorten(text: str, limit: int) -> str:
    """Return the text with its middle left out where it is too long.

    Whole words are left out, or whole parts of a name that is longer than what can be kept.
    """
    if len(text) <= limit:
        return text
    kept = limit - len(" … ")
    tail = kept // 3
    rest = len(text) - tail
    short = _cuts(text, rest - 1, len(text) - tail // 4 - 1)
    long = _cuts(text, len(text) - 2 * tail, rest - 1)  # a long last word, with less of the beginning
    rest = 1 + next(iter(short or long[-1:]), rest - 1)
    head = min(kept - tail, kept - (len(text) - rest))
    head = max(_cuts(text, head // 4 + 1, head + 1), default=head)
    return f"{text[:head]} … {text[rest:]}"


def _cuts(text: str, start: int, end: int) -> list[int]:
    """Return the places of a range between two words; where there is none, those between two parts of a name."""
    found = ([cut.start() for cut in kind.finditer(text)] for kind in (_GAP, _JOINT))
    return next(filter(None, ([at for at in cuts if start <= at < end] for cuts in found)), [])


def _on_one_line(text: str) -> str:
    return _visible(_LINE_BREAKS.sub(" ", text).strip())


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(_escaped(char) if unicodedata.category(char) in _INVISIBLE else char for char in text)


def _escaped(char: str | re.Match[str]) -> str:
    return char[0].encode("unicode_escape", "surrogatepass").decode("ascii")


_WORDS = "no one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return a count with its noun, small ones in words: ``three changes``, ``20 steps``."""
    amount = _WORDS[count] if 0 <= count < len(_WORDS) else f"{count:,}"
    return f"{amount} {singular if count == 1 else plural or singular + 's'}"


def unbroken(sentence: str, space: str = "\N{NO-BREAK SPACE}") -> str:
    """Return a sentence in which no line ends between a number and its unit."""
    return re.sub(r"(?<=\d) (?=(?:ms|s|µs)\b|%)", space, sentence)

"""Finds names in a text, each where it can be nothing else."""

import re
from collections.abc import Iterable

from tfdoctor.scrub.paths import ABSOLUTE, ENDS, HOME, HOMES, PACKAGES, ROOTS_HOME, SCRIPTS
from tfdoctor.scrub.secrets import NOBODY, Secrets

TELLING_LETTERS = 4
"""A shorter name is likely a word, a unit or an abbreviation as well: map, max, gpu, ms."""


class Words:
    """Replaces names: call it with a text. `vocabulary` has the report's own words, in small letters."""

    def __init__(self, secrets: Secrets, vocabulary: frozenset[str]) -> None:
        self.users = _aliases(secrets.users, "user")
        short = _aliases(dict.fromkeys(map(_short, secrets.hosts)), "host")
        hosts = short | {host: short[_short(host)] for host in secrets.hosts}
        self.names = {**self.users, **hosts}
        telling = {name for name in self.names if _tells(name, vocabulary)}
        self.homes = _any(secrets.homes, before=r"(?<![\w.~-])", after=r"(?![\w.-])")
        self.known_home = _any(self.users, before=HOMES, after=rf"(?=[{ENDS}]|$)")
        self.account = _any(self.users, before=r"(?<![\w.-])", after="(?=@)")
        self.file = _any(hosts, before=r"(?<![\w.-])", after=r"(?=(?:_\d+)?\.xplane\.pb)")
        self.part = _any(self.names, before=r"(?<=[\\/])", after=rf"(?=[{ENDS}]|$)")
        self.alone = _any(telling, before="(?<![A-Za-z0-9])", after="(?![A-Za-z0-9])")

    def __call__(self, text: str) -> str:
        """Return the text without names."""
        text = self.homes.sub("~", text)
        for pattern in (self.known_home, HOME):
            text = pattern.sub(self._home, text)
        text = ROOTS_HOME.sub("~", text)
        text = ABSOLUTE.sub(self._path, text)
        for pattern in (self.account, self.file, self.alone):
            text = pattern.sub(self._alias, text)
        return text

    def whole(self, text: str) -> str:
        """Return the text without names, where it may be a name and nothing else."""
        return self.names.get(text) or self(text)

    def _home(self, found: re.Match[str]) -> str:
        """Tell the homes of several users apart."""
        name = found["name"]
        if name.endswith(SCRIPTS):
            return found[0]
        first = next(iter(self.users), name)
        return (
            "~" if name == first or name.lower() in NOBODY else f"~{self.users.get(name, 'user')}"
        )

    def _path(self, found: re.Match[str]) -> str:
        package = PACKAGES.search(found[0])
        end = package.end() - 1 if package else len(found[0])
        return self.part.sub(self._alias, found[0][:end]) + found[0][end:]

    def _alias(self, found: re.Match[str]) -> str:
        return self.names[found["name"]]


def _any(names: Iterable[str], *, before: str, after: str) -> re.Pattern[str]:
    """Return a pattern for any of these names, the longest first; of none, one that matches nothing."""
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(f"{before}(?P<name>{'|'.join(longest)}){after}" if longest else r"(?!)")


def _aliases(names: Iterable[str], kind: str) -> dict[str, str]:
    """Number the names, unless there is one only."""
    names = tuple(names)
    return {
        name: kind if len(names) == 1 else f"{kind}-{place}"
        for place, name in enumerate(names, start=1)
    }


def _short(host: str) -> str:
    """Return a host's name without its domain; an address of numbers has none."""
    return host if re.fullmatch(r"[\d.]+", host) else host.partition(".")[0]


def _tells(name: str, vocabulary: frozenset[str]) -> bool:
    return len(name) >= TELLING_LETTERS and name.lower() not in vocabulary

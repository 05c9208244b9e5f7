"""Replaces names in a text, only where they cannot be other words."""

import re
from collections.abc import Iterable

from tfdoctor.scrub.paths import ABSOLUTE, ENDS, HOME, HOMES, PACKAGES, ROOTS_HOME, SCRIPTS
from tfdoctor.scrub.secrets import NOBODY, Secrets

IDENTIFYING_LETTERS = 4  # Shorter names are often words, units or abbreviations as well: map, max, gpu, ms


class Words:
    """Replaces names in texts; `vocabulary` contains the words of the report, in lowercase."""

    def __init__(self, secrets: Secrets, vocabulary: frozenset[str]) -> None:
        self.users = _aliases(secrets.users, "user")
        short = _aliases(dict.fromkeys(map(_short, secrets.hosts)), "host")
        hosts = short | {host: short[_short(host)] for host in secrets.hosts}
        self.names = {**self.users, **hosts}
        long = (name for name in self.names if len(name) >= IDENTIFYING_LETTERS)
        identifying = {name for name in long if name.lower() not in vocabulary}
        self.homes = _any(secrets.homes, before=r"(?<![\w.~-])", after=r"(?![\w.-])")
        self.known_home = _any(self.users, before=HOMES, after=rf"(?=[{ENDS}]|$)")
        self.account = _any(self.users, before=r"(?<![\w.-])", after="(?=@)")
        self.file = _any(hosts, before=r"(?<![\w.-])", after=r"(?=(?:_\d+)?\.xplane\.pb)")
        self.part = _any(self.names, before=r"(?<=[\\/])", after=rf"(?=[{ENDS}]|$)")
        self.alone = _any(identifying, before="(?<![A-Za-z0-9])", after="(?![A-Za-z0-9])")

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

    def as_name(self, text: str) -> str:
        """Return the alias of a text that is a name, else the text without names."""
        return self.names.get(text) or self(text)

    def _home(self, match: re.Match[str]) -> str:
        """Return the alias of a home folder; those of several users differ."""
        name = match["name"]
        if name.endswith(SCRIPTS):
            return match[0]
        first = next(iter(self.users), name)
        return "~" if name == first or name.lower() in NOBODY else f"~{self.users.get(name, 'user')}"

    def _path(self, match: re.Match[str]) -> str:
        package = PACKAGES.search(match[0])
        end = package.end() - 1 if package else len(match[0])
        return self.part.sub(self._alias, match[0][:end]) + match[0][end:]

    def _alias(self, match: re.Match[str]) -> str:
        return self.names[match["name"]]


def _any(names: Iterable[str], *, before: str, after: str) -> re.Pattern[str]:
    """Return a pattern for any of these names, longest first; without names it matches nothing."""
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(f"{before}(?P<name>{'|'.join(longest)}){after}" if longest else r"(?!)")


def _aliases(names: Iterable[str], kind: str) -> dict[str, str]:
    """Return an alias for each name, numbered if there are several."""
    names = tuple(names)
    return {name: kind if len(names) == 1 else f"{kind}-{place}" for place, name in enumerate(names, start=1)}


def _short(host: str) -> str:
    """Return a host name without its domain; an IP address stays."""
    return host if re.fullmatch(r"[\d.]+", host) else host.partition(".")[0]

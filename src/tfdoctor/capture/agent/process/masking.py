"""Arguments without what is nobody's business: passwords, keys and tokens."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MASK = "***"


def _after_none(words: str, then: str) -> str:
    """Return a pattern of `then`, but not where one of the words stands before it."""
    return f"(?={then})" + "".join(f"(?<!{word})(?<!{word}[_-])" for word in words.split()) + then


WORDS = "|".join(
    (
        _after_none("num max min sub pad bos eos unk mask sep cls", "token")
        + r"(?!i[sz]|s.per|s?[_-](?:dim|drop|embed|len|size|type|vocab))",
        _after_none("mon query signature", "key")
        + r"(?!board|frame|point|word|[_-](?:col|dim|len|size))",
        r"secret|passw|passphrase|credential|auth(?!or(?!i[sz]))|cookie(?![_-]?cutter)|pwd(?![a-z])",
        _after_none(
            "by com sur tres low high band single multi one two forward backward num max", "pass"
        )
        + r"(?![a-z])",
        r"signature(?![\w.-])|(?<![a-z])(?:pw|sig|pat|sas)(?![\w.-])",
    )
)
"""Parts of the names of credentials, but for what training scripts call so: `--max_tokens`, `--tokenizer`,
`--key_dim`, `--author`, `--bypass`, `--signature_def`."""

SECRET = re.compile(WORDS, re.IGNORECASE)
"""Options whose values are masked. A short option says nothing of what it takes: `-p` is a port as often
as a password, and is left alone."""

NAME = rf"(?<![\w.-])(?=[\w.-]*?(?:{WORDS}))[\w.-]+"
"""The name of a credential, begun at its beginning only: arguments may be long, and this is linear."""

USER = ("-u", "--user", "--proxy-user")
"""Options of curl and others that take `name:password`."""

PORT = r"(?:localhost|[\w-]+\.[\w.-]+|[\w-]*\d):\d{1,5}(?:[\s,/:]|$)"
"""What looks like `name:password` and is a host's port, or a user and a group by number: `worker0:6009`,
`1000:1000`."""

PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), rf"\g<1>{MASK}")
    for pattern in (
        r"(://[^:/@\s]*:)[^/@\s]+(?=@)",  # postgres://user:password@host
        r"(\bhttps?://)[^/@:\s]+(?=@)",  # https://token@host
        rf"((?<=;){NAME}=)[^;\"'\n]+",  # Server=host;Password=with spaces;
        rf"({NAME}=)(?:\"[^\"]*\"|'[^']*'|[^\s&;]+)",  # TOKEN=…, ?api_key=…
        rf"((?:^|\s)(?=-){NAME}\s+)(?!-)\S+",  # inside `bash -c "train --token …"`
        rf"(\"(?=[^\"]*?(?:{WORDS}))[^\"]*\"\s*:\s*\")[^\"]*(?=\")",  # {"api_key": "…"}
        rf"(\"(?=[^\"]*?(?:{WORDS}))[^\"]*\"\s*:\s*)[\w.-]+",  # {"pin_token": 123}
        r"(\b(?:authorization|cookie)\s*:\s*(?:\w+\s+)?)[^\"'\n]+",  # Authorization: Token …
        r"(\b(?:bearer|basic)\s+)[\w.~+/=-]+",  # Authorization: Bearer …
        # -u name:password; not 1000:1000, host:8080 or http://host
        rf"((?:^|\s)(?:-u[\s=]*|--(?:proxy-)?user[\s=]+)(?!{PORT})[^:/\s]+:)(?!//)[^\s\"']+",
    )
)

KNOWN = re.compile(
    r"\b(hf_\w{20,}|gh[opsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|sk-[\w-]{20,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]+\.[\w-]+)"
)
"""Tokens that show what they are: Hugging Face, GitHub, GitLab, OpenAI, AWS, Slack, Google, a JWT."""


def masked(arguments: Iterable[str]) -> list[str]:
    """Return a command's arguments with the values of credentials replaced by ***."""
    shown: list[str] = []
    hide, before = False, ""
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        secret = SECRET.search(name) is not None and not re.search(r"\s", name)
        if hide and not argument.startswith("-"):
            shown.append(MASK)
        elif equals and secret and "://" not in name:
            shown.append(f"{name}={MASK}")
        elif before in USER:
            shown.append(clean(f"-u {argument}").removeprefix("-u "))
        else:
            shown.append(clean(argument))
        before = argument
        hide = secret and argument.startswith("-") and not equals
    return shown


def clean(text: str) -> str:
    """Return a text without the credentials that are written out in it."""
    for pattern, shown in PATTERNS:
        text = pattern.sub(shown, text)
    return KNOWN.sub(MASK, text)

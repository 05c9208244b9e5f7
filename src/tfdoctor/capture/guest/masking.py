"""Arguments without what is nobody's business: passwords, keys and tokens."""

import re
from collections.abc import Iterable

MASK = "***"

WORDS = (
    "token|key|secret|passw|passphrase|credential|auth|cookie|(?:pass|pwd|signature)(?![a-z])"
    "|(?<![a-z])(?:pw|sig|pat|sas)(?![\\w.-])"
)

SECRET = re.compile(WORDS, re.IGNORECASE)
"""Options whose values are masked; so is that of `--author`, which hurts nobody. A short option says
nothing of what it takes: `-p` is a port as often as a password, and is left alone."""

PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), rf"\g<1>{MASK}")
    for pattern in (
        r"(://[^:/@\s]*:)[^/@\s]+(?=@)",  # postgres://user:password@host
        r"(\bhttps?://)[^/@:\s]+(?=@)",  # https://token@host
        rf"([\w.-]*(?:{WORDS})[\w.-]*=)(?:\"[^\"]*\"|'[^']*'|[^\s&;]+)",  # TOKEN=…, ?api_key=…
        rf"((?:^|\s)--?[\w.-]*(?:{WORDS})[\w.-]*\s+)(?!-)\S+",  # inside `bash -c "train --token …"`
        rf"(\"[^\"]*(?:{WORDS})[^\"]*\"\s*:\s*\")[^\"]*(?=\")",  # {"api_key": "…"}
        rf"(\"[^\"]*(?:{WORDS})[^\"]*\"\s*:\s*)[\w.-]+",  # {"pin_token": 123}
        r"(\b(?:authorization|cookie)\s*:\s*(?:\w+\s+)?)[^\"'\n]+",  # Authorization: Token …
        r"(\b(?:bearer|basic)\s+)[\w.~+/=-]+",  # Authorization: Bearer …
        r"((?:^|\s)(?:-u|--user)[\s=]+[^:/\s]+:)(?!\d+(?:\s|$))[^\s/]+",  # -u name:password; not 1000:1000
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
        elif before in ("-u", "--user"):
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

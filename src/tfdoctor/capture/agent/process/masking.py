"""Arguments without what is nobody's business: passwords, keys and tokens."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MASK = "***"

LONGEST = 50_000  # Characters of a text that are read to show its beginning


def _after_none(words: str, then: str) -> str:
    """Return a pattern of `then`, but not where one of the words stands before it."""
    return f"(?={then})" + "".join(f"(?<!{word})(?<!{word}[_-])" for word in words.split()) + then


# Parts of the names of credentials, but for what training scripts call so: `--max_tokens`, `--tokenizer`,
# `--key_dim`, `--author`, `--bypass`, `--signature_def`.
WORDS = "|".join(
    (
        _after_none("num max min sub pad bos eos unk mask sep cls", "token")
        + r"(?!i[sz]|s.per|s?[_-](?:dim|drop|embed|len|size|type|vocab))",
        _after_none("mon query signature", "key") + r"(?!board|frame|point|word|[_-](?:col|dim|len|size))",
        r"secret|passw|passphrase|credential|auth(?!or(?!i[sz]))|cookie(?![_-]?cutter)|pwd(?![a-z])",
        _after_none("by com sur tres low high band single multi one two forward backward num max", "pass")
        + r"(?![a-z])",
        r"signature(?![\w.-])|(?<![a-z])(?:pw|sig|pat|sas)(?![\w.-])",
    )
)

# Options whose values are masked. A short option says nothing of what it takes: `-p` is a port as often as a
# password, and is left alone.
SECRET = re.compile(WORDS, re.IGNORECASE)
# The name of a credential, begun at its beginning only: arguments may be long, and this is linear.
NAME = rf"(?<![\w.-])(?=[\w.-]*?(?:{WORDS}))[\w.-]+"
USER = ("-u", "--user", "--proxy-user")  # Options of curl and others that take `name:password`
# What looks like `name:password` and is a host's port, or a user and a group by number: `worker0:6009`,
# `1000:1000`.
PORT = r"(?:localhost|[\w-]+\.[\w.-]+|[\w-]*\d):\d{1,5}(?:[\s,/:]|$)"

PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), rf"\g<1>{MASK}")
    for pattern in (
        r"(://[^:/@\s]*:)[^/@\s]+(?=@)",  # postgres://user:password@host
        r"(\bhttps?://)[^/@:\s]+(?=@)",  # https://token@host
        rf"((?<=;){NAME}=)[^;\"'\n]+",  # Server=host;Password=with spaces;
        rf"({NAME}=)(?:\"[^\"]*\"|'[^']*'|[^\s&;]+)",  # TOKEN=…, ?api_key=…
        rf"((?:^|\s)(?=-){NAME}\s+)(?!-)\S+",  # inside `bash -c "train --token …"`
        rf"(\"(?=[^\"]*?(?:{WORDS}))[^\"]*\"\s*:\s*\")[^\"]*(?=\")",  # {"api_key": "…"}
        rf"('(?=[^']*?(?:{WORDS}))[^']*'\s*:\s*')[^']*(?=')",  # {'api_key': '…'}
        rf"([\"'](?=[^\"']*?(?:{WORDS}))[^\"']*[\"']\s*:\s*)[\w.-]+",  # {"pin_token": 123}
        r"(\b(?:authorization|cookie)\s*:\s*(?:\w+\s+)?)[^\"'\n]+",  # Authorization: Token …
        r"(\b(?:x|private|proxy)-[\w-]{0,40}(?:key|token|auth|secret)\s*:\s*)[^\"'\n]+",  # X-Api-Key: …
        r"(\bhooks\.slack\.com/services/|\bdiscord(?:app)?\.com/api/webhooks/|\.webhook\.office\.com/)[\w/@-]+",
        r"(\bPrivate-Lines:\s*\d+)[\s\S]+",  # a key of PuTTY
        r"(\bwandb\s+login\s+(?:-\S+\s+)*)[0-9a-f]{40}\b",
        r"(\b(?:bearer|basic)\s+)[\w.~+/=-]+",  # Authorization: Bearer …
        # -u name:password; not 1000:1000, host:8080 or http://host
        rf"((?:^|\s)(?:-u[\s=]*|--(?:proxy-)?user[\s=]+)(?!{PORT})[^:/\s]+:)(?!//)[^\s\"']+",
    )
)

# Tokens that show what they are, by their issuers' prefixes: Hugging Face, GitHub, npm, Groq, Replicate, Supabase,
# Grafana, Together, Netlify; Weights & Biases, Docker, Sentry, LangSmith, Pinecone; GitLab, Kaggle, PlanetScale;
# Fireworks, Notion, RunPod, Discord; OpenAI, Anthropic, Langfuse, Mapbox; Stripe, Shopify, Square; AWS, Google;
# Slack, NVIDIA, PyPI, DigitalOcean; SendGrid, Vault, Databricks, Atlassian, RubyGems; Bitbucket, JFrog, Terraform,
# Doppler; Figma, Postman, New Relic, Tailscale, CircleCI; Pulumi, Sonar, Fly, Brevo, Heroku; Azure, Mailgun,
# Twilio, Telegram; a JWT, age. Each with as much after the prefix as keeps names of files and of packages
# (`sk-learn-image`, `hf_transformers_cache`).
ISSUERS = (
    r"(?:hf_|api_org_|gh[oprsu]_|npm_|gsk_|r8_|pplx-|xai-|sbp_|glsa_|lin_api_|tgp_v1_|nfp_)[A-Za-z0-9]{30,}",
    r"(?:github_pat_|wandb_v\d_|(?:dckr|sntry|sntrys)_(?:pat_|oat_)?|lsv2_[ps][tk]_|pcsk_|sb_secret_|glc_)\w{20,}",
    r"gh[oprsu]_\d{1,20}_[\w.-]{20,}",
    r"gl(?:pat|dt|rt|ptt|agent|oas|cbt|ft|imt|soat)-[\w-]{20,}|dckr_[op]at_[\w-]{20,}|KGAT_\w{20,}|pscale_tkn_[\w-]{20,}",
    r"(?:fw|ntn|rpa)_[A-Za-z0-9]{20,}|secret_[A-Za-z0-9]{40,}|[\w-]{24,28}\.[\w-]{6}\.[\w-]{38,}",
    r"sk-(?:(?:ant|proj|svcacct|admin|or|None|lf)-[\w-]{20,}|[A-Za-z0-9]{20,})|sk\.eyJ[\w-]{20,}",
    r"[prs]k_(?:live|test)_\w{16,}|shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}|whsec_\w{20,}|sq0(?:atp|csp)-[\w-]{20,}",
    r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Za-z])|AIza[\w-]{30,}|GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,}|1//0[\w-]{30,}",
    r"xox[abceoprs]-[\w-]{10,}|xapp-\d-[\w-]{10,}|nvapi-[\w-]{20,}|pypi-AgE[\w-]{10,}|do[opr]_v1_[0-9a-f]{32,}",
    r"\bSG\.[\w-]{16,}\.[\w-]{16,}|hv[bs]\.[\w-]{20,}|dapi[0-9a-f]{32}|ATATT3[\w=-]{20,}|rubygems_[0-9a-f]{40,}",
    r"ATBB[A-Za-z0-9]{28,}|AKCp[A-Za-z0-9]{60,}|\w{14}\.atlasv1\.[\w-]{40,}|dp\.(?:pt|st|ct|sa)\.[\w.-]{40,}",
    r"figd_[\w-]{20,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|NRAK-[A-Z0-9]{27}|tskey-[a-z]+-[\w-]{16,}|CCIPAT_\w{20,}",
    r"pul-[0-9a-f]{40}|sq[apu]_[0-9a-f]{40}|fo1_[\w-]{40,}|fm[12]r?_[\w+/=-]{40,}|xkeysib-[0-9a-f]{60,}|HRKU-[\w-]{30,}",
    r"[A-Za-z0-9_-]{3}8Q~[\w.~-]{31,}|key-[0-9a-f]{32}|SK[0-9a-f]{32}|\d{8,10}:AA[\w-]{33}",
    r"\beyJ[\w-]{10,}\.[\w-]+\.[\w-]+|AGE-SECRET-KEY-1[0-9A-Z]{50,}",
)

# Whatever stands before one: `-tghp_…` is an option with its value, `\nhf_…` the end of a line in JSON.
KNOWN = re.compile("|".join(ISSUERS))
# Between arguments while a key is looked for that a shell has split: white space that nobody types.
BETWEEN = "\x1f"


def _private_key(space: str) -> re.Pattern[str]:
    """Return the pattern of a private key, to its end or that of the text, with this between its words."""
    head = f"-{{4,5}}{space}?BEGIN[{space}A-Z0-9]{{0,40}}PRIVATE{space}+KEY(?:{space}+BLOCK)?{space}?-{{4,5}}"
    return re.compile(rf"({head})[\s\S]*?(?:-{{4,5}}{space}?END[{space}A-Z0-9]*-{{4,5}}|\Z)")


PEM, SPLIT_PEM = _private_key(r"\s"), _private_key(BETWEEN)

HEX_KEY = re.compile(r"[0-9a-f]{40}")  # A key of Weights & Biases after `login`; elsewhere, it looks like a hash


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
        elif before == "login" and HEX_KEY.fullmatch(argument):
            shown.append(MASK)
        elif before in USER:
            shown.append(clean(f"-u {argument}").removeprefix("-u "))
        else:
            shown.append(clean(argument))
        before = argument
        hide = secret and argument.startswith("-") and not equals
    text = BETWEEN.join(shown)
    return SPLIT_PEM.sub(rf"\g<1>{MASK}", text).split(BETWEEN) if SPLIT_PEM.search(text) else shown


def clean(text: str) -> str:
    """Return a text without the credentials that are written out in it."""
    text = PEM.sub(rf"\g<1>{MASK}", text)
    for pattern, shown in PATTERNS:
        text = pattern.sub(shown, text)
    return KNOWN.sub(MASK, text)


def cleaned_begin(text: str, length: int) -> str:
    """Return the beginning of a text without credentials: masked before it is cut, for half a token has no form."""
    return clean(text[:LONGEST])[:length]

"""Keys, tokens and passwords are masked on the way into the memory, visibly, and never stored.

What is fixed in form is found by the patterns of detect-secrets where they are linear, and by ours where they
are not or it has none: tokens that are younger than it, passwords in URLs, blocks of private keys. What only
looks random stays: commits, UUIDs and checksums are no secrets.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without its secrets, and how many of which kind were in it."""

    text: str
    kinds: Mapping[str, int]

    @property
    def count(self) -> int:
        """How many secrets were masked."""
        return sum(self.kinds.values())


@dataclass(frozen=True, slots=True)
class _Secret:
    start: int
    end: int
    kind: str


def mask(text: str) -> Masked:
    """The text with each secret replaced by what it was, as in `[masked: AWS access key]`; all else stays as
    it is. A text that went through here before comes back as it is.
    """
    kinds: Counter[str] = Counter()
    while found := _separate(sorted(_secrets(text), key=lambda each: (each.start, -each.end))):
        # Again, until there are none: what stood beside a secret may be seen to be one without it.
        text = _replaced(text, found)
        kinds.update(each.kind for each in found)
    return Masked(text, dict(kinds))


def _separate(found: Sequence[_Secret]) -> list[_Secret]:
    """Secrets that overlap are one."""
    apart: list[_Secret] = []
    for each in found:
        if apart and each.start < apart[-1].end:
            first = apart[-1]
            apart[-1] = _Secret(first.start, max(first.end, each.end), first.kind)
        else:
            apart.append(each)
    return apart


def _replaced(text: str, found: Sequence[_Secret]) -> str:
    parts, at = [], 0
    for each in found:
        parts += [text[at : each.start], f"[masked: {each.kind}]"]
        at = each.end
    return "".join([*parts, text[at:]])


def _secrets(text: str) -> Iterator[_Secret]:
    yield from _private_keys(text)
    for form in _forms():
        if form.signs and not any(sign in text for sign in form.signs):
            continue
        yield from _tokens(text, form)
    yield from _named(text)


def _tokens(text: str, form: _Form) -> Iterator[_Secret]:
    at = 0
    while found := form.pattern.search(text, at):
        start, end = _span(found)
        rest = _REST.match(text, end)
        at = max(rest.end() if rest else end, at + 1)
        if not _within_word(text, start):
            yield _Secret(start, at, form.kind)


def _within_word(text: str, start: int) -> bool:
    r"""Whether a token would begin amid something longer. An escape may stand before it: `\n`, `%3D`."""
    return bool(_WORD.match(text, start) and start and _WORD.match(text, start - 1)) and not _ESCAPE.search(
        text, max(start - 6, 0), start
    )


_WORD = re.compile(r"[A-Za-z0-9]")
_ESCAPE = re.compile(r"(?:\\[nrt]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4})$")
_REST = re.compile(r"[A-Za-z0-9_+/=-]*")
"""What goes on after the characters that a pattern asks for is part of the token."""

_BEGIN = re.compile(
    r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d:"
)
_END = re.compile(
    r"-{4,5} ?END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-MAC: ?[0-9a-f]*"
)


def _private_keys(text: str) -> Iterator[_Secret]:
    """Whole blocks; one that does not end reaches to the end of the text."""
    at = 0
    while begin := _BEGIN.search(text, at):
        end = _END.search(text, begin.end())
        at = end.end() if end else len(text)
        yield _Secret(begin.start(), at, "private key")


_DETECTORS = (
    ("aws.AWSKeyDetector", "AWS access key", ""),
    ("azure_storage_key.AzureStorageKeyDetector", "Azure storage key", "AccountKey="),
    ("discord.DiscordBotTokenDetector", "Discord token", ""),
    ("github_token.GitHubTokenDetector", "GitHub token", "gh"),
    ("gitlab_token.GitLabTokenDetector", "GitLab token", "gl GR1348941"),
    ("mailchimp.MailchimpDetector", "Mailchimp key", "-us"),
    ("pypi_token.PypiTokenDetector", "PyPI token", "pypi-"),
    ("sendgrid.SendGridDetector", "SendGrid key", "SG."),
    ("slack.SlackDetector", "Slack token", ""),
    ("square_oauth.SquareOAuthDetector", "Square secret", "sq0csp-"),
    ("stripe.StripeDetector", "Stripe key", "k_live_"),
    ("telegram_token.TelegramBotTokenDetector", "Telegram token", ""),
    ("twilio.TwilioKeyDetector", "Twilio key", "AC SK"),
)
"""Plugins of detect-secrets, the kind each finds, and signs of which one stands in every token of it.

Of its other plugins some look for entropy or words, which finds too much, and some take minutes over a long
line (JWT, npm, OpenAI, IBM, Cloudant, SoftLayer).
"""

_FIXED = (
    ("Anthropic key", "sk-ant-", r"sk-ant-[\w-]{16,}"),
    ("OpenAI key", "sk-", r"sk-(?=[\w-]{0,80}?\d)(?=[\w-]{0,80}?[A-Z])[\w-]{20,}"),
    ("API key", "sk-", r"sk-(?:[a-z]{2,8}-){0,2}(?:v\d-)?[a-z0-9]{32,}"),
    ("GitHub token", "github_pat_", r"github_pat_\w{22,}"),
    ("Slack token", "xox xapp-", r"xox[a-z]-[\w-]{10,}|xapp-\d-[\w-]{10,}"),
    ("Stripe key", "_live_ _test_ whsec_", r"(?:sk|rk)_(?:live|test)_\w{16,}|whsec_\w{24,}"),
    ("Google key", "AIza GOCSPX- ya29.", r"AIza[\w-]{35}|GOCSPX-[\w-]{28}|ya29\.[\w-]{20,}"),
    ("Azure secret", "Q~", r"[\w~.]{3}\dQ~[\w~.-]{31,34}"),
    ("npm token", "npm_ _authToken=", r"npm_[A-Za-z0-9]{36}|:_authToken=[ ]{0,4}([\w-]{36,})"),
    ("Hugging Face token", "hf_", r"hf_[A-Za-z]{30,}"),
    ("DigitalOcean token", "_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    ("xAI key", "xai-", r"xai-[A-Za-z0-9]{60,}"),
    ("Groq key", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    ("Shopify token", "shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("age key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    (
        "JSON web token",
        "eyJ",
        r"(?:(?<![\w-])|(?<=\\[nrt])|(?<=%3D)|(?<=%20))eyJ[\w-]{10,}\.eyJ[\w-]{10,}(?:\.[\w-]+)?",
    ),
    ("password", "://", r"://[^\s/:@?#\"'<>\[\]]{0,256}:([^\s/?#\"'<>\[\]]{1,256})@(?=[\w\[])"),
)
"""Tokens of a fixed form: kind, signs, pattern. In what has a group, the group is the secret."""


@dataclass(frozen=True, slots=True)
class _Form:
    kind: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]


@cache
def _forms() -> tuple[_Form, ...]:
    """Every form of token. The detector is loaded when a text is first looked through."""
    from importlib import import_module

    forms = [_Form(kind, tuple(signs.split()), re.compile(each, re.ASCII)) for kind, signs, each in _FIXED]
    for name, kind, signs in _DETECTORS:
        module, _, plugin = name.partition(".")
        detector = getattr(import_module(f"detect_secrets.plugins.{module}"), plugin)
        forms += [_Form(kind, tuple(signs.split()), pattern) for pattern in detector.denylist]
    return tuple(forms)


def _span(found: re.Match[str]) -> tuple[int, int]:
    """Where the secret is in what a pattern found: a long group, or all of it (`(ghp|gho)_…`)."""
    if found.re.groups and (found.start(1) >= 0 and ("@" in found[0] or len(found[1]) >= 24)):
        return found.span(1)
    return found.span()


_NAMED = re.compile(
    r"(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|auth[_-]?key)(?:[_-]\w{1,20})?"
    r"[\"']?[ \t]{0,4}(?:=>|:=|=|:)[ \t]{0,4}[\"']?(?P<value>[^\s\"'`,;()\[\]{}<>|$\\]{8,500}+)(?!\()",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    r"authorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?:bearer|basic|token)[ \t]{1,4}"
    r"(?P<value>[\w.~+/=-]{8,})",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z_]+\d{0,2}(?:[.:/-][A-Za-z_]*\d{0,2})*")


def _named(text: str) -> Iterator[_Secret]:
    """What the name before it says to be a secret, and what looks like one: letters and digits mixed."""
    for kind, pattern in (("authorization", _AUTHORIZATION), ("password or key", _NAMED)):
        for found in pattern.finditer(text):
            if _looks_random(found["value"]):
                yield _Secret(*found.span("value"), kind)


def _looks_random(value: str) -> bool:
    mixed = any(map(str.isalpha, value)) and any(map(str.isdigit, value))
    return mixed and "://" not in value and not _IDENTIFIER.fullmatch(value)

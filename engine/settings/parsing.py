"""How the text of a setting becomes its value, and how a secret is kept off the screen.

A parser takes what a source holds (always text in the environment and in `.env`; text, numbers,
booleans or lists in config.toml) and the folder that relative paths start from. It raises
ValueError or TypeError; the caller turns that into a sentence that names the setting and its source.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from engine.errors import FolderError

from .paths import expanded, real

Parser = Callable[[object, Path], object]

EMBEDDED = "embedded"
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_POSTGRES = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")
_ACCOUNT = re.compile(r"[\w.@:+-]{1,256}")
_URL_PASSWORD = re.compile(r"(://[^:/?#@\s]*:).*@")
_NAMED_PASSWORD = re.compile(r"(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)")


def _as_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text is expected")
    return value.strip()


def text(value: object, base: Path) -> str:
    """Any text that is not empty."""
    del base
    found = _as_text(value)
    if not found:
        raise ValueError("it is empty")
    return found


def command(value: object, base: Path) -> str:
    """A command line whose quotes are balanced."""
    found = text(value, base)
    shlex.split(found)
    return found


def choice(*allowed: str) -> Parser:
    """One of a few words; accepted in any case, given back as written here."""
    canonical = {word.lower(): word for word in allowed}

    def parse(value: object, base: Path) -> str:
        found = text(value, base).lower()
        if found not in canonical:
            raise ValueError("it is none of these")
        return canonical[found]

    return parse


def boolean(value: object, base: Path) -> bool:
    """Yes or no in the usual spellings."""
    if isinstance(value, bool):
        return value
    found = str(value).strip().lower() if isinstance(value, int) else text(value, base).lower()
    if found in _TRUE:
        return True
    if found in _FALSE:
        return False
    raise ValueError("it is neither yes nor no")


def integer(low: int, high: int) -> Parser:
    """A whole number between two bounds, both included."""

    def parse(value: object, base: Path) -> int:
        if isinstance(value, bool):
            raise TypeError("a number is expected")
        found = value if isinstance(value, int) else int(text(value, base))
        if not low <= found <= high:
            raise ValueError("it is out of range")
        return found

    return parse


def number(low: float, high: float) -> Parser:
    """A finite number between two bounds, both included."""

    def parse(value: object, base: Path) -> float:
        if isinstance(value, bool):
            raise TypeError("a number is expected")
        found = float(value) if isinstance(value, int | float) else float(text(value, base))
        if not math.isfinite(found) or not low <= found <= high:
            raise ValueError("it is out of range")
        return found

    return parse


def folders(separator: str) -> Parser:
    """Folders as a list, or as text with a separator; `~` is the home folder."""

    def parse(value: object, base: Path) -> tuple[Path, ...]:
        parts = value if isinstance(value, list) else _as_text(value).split(separator)
        named = [text(part, base) for part in parts if part != ""]
        try:
            return tuple(dict.fromkeys(real(base / expanded(Path(part))) for part in named))
        except FolderError as error:
            raise ValueError(error.message) from error

    return parse


def database_url(value: object, base: Path) -> str | None:
    """A PostgreSQL address, or None for the word `embedded`. A `+driver` in the scheme is dropped."""
    found = text(value, base)
    if found.lower() == EMBEDDED:
        return None
    scheme = _POSTGRES.match(found)
    if scheme:
        return "postgresql://" + found[scheme.end() :]
    if "://" in found or "=" not in found:
        raise ValueError("it is not a PostgreSQL address")
    return found


def http_url(value: object, base: Path) -> str:
    """An http(s) address without a slash at its end."""
    found = text(value, base)
    parts = urlsplit(found)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("it is not an address")
    return found.rstrip("/")


def secret(value: object, base: Path) -> str:
    """A key or token: printable ASCII without blanks, as a header carries it."""
    found = text(value, base)
    if not (found.isascii() and found.isprintable()) or " " in found:
        raise ValueError("it is not a key")
    return found


def account_keys(value: object, base: Path) -> tuple[tuple[str, str], ...]:
    """Pairs of an account and a key of its, as a list or as text with commas. No key is of two accounts."""
    parts = value if isinstance(value, list) else _as_text(value).split(",")
    found: dict[str, str] = {}
    for part in parts:
        account, _, key = text(part, base).partition("=")
        if not _ACCOUNT.fullmatch(account) or found.setdefault(secret(key, base), account) != account:
            raise ValueError("it is not the key of one account")
    return tuple((account, key) for key, account in found.items())


def keymap(value: object, base: Path) -> dict[str, str]:
    """Binding id to keys; several keys as a list or separated by commas.

    TOML reads `list.copy = "y"` as a table `list` that holds `copy`; both spellings mean one binding.
    """
    if not isinstance(value, dict):
        raise TypeError("a table is expected")
    found: dict[str, str] = {}
    for binding, keys in value.items():
        if isinstance(keys, dict):
            found |= {f"{binding}.{verb}": under for verb, under in keymap(keys, base).items()}
        else:
            several = keys if isinstance(keys, list) else [keys]
            found[str(binding)] = ",".join(text(key, base) for key in several)
    return found


def mask(value: str) -> str:
    """The same text with every password in it replaced by `***`."""
    return _NAMED_PASSWORD.sub(r"\1***", _URL_PASSWORD.sub(r"\1***@", value))

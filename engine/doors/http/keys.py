"""The keys of the server: which one a request shows, and the account it stands for.

A key is shown as `X-API-Key: …` or as `Authorization: Bearer …`, never both: of two that differ, nobody could
say whose memory was meant. All keys are compared, each in constant time.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.doors.http.asgi import every
from engine.memory.model import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.doors.http.asgi import Scope

API_KEY = b"x-api-key"
AUTHORIZATION = b"authorization"

ONE = "Show one key, once: as X-API-Key, or as Authorization: Bearer."
WRONG = "A token is missing or wrong."


class Unauthorized(Exception):
    """The request shows no key of ours; its text says so to the client. `shown` tells that it showed one."""

    def __init__(self, detail: str, *, shown: bool) -> None:
        super().__init__(detail)
        self.detail = detail
        self.shown = shown


@dataclass(frozen=True)
class Keys:
    """The keys with their accounts. Without any the server is open, and whoever asks is `LOCAL`."""

    accounts: tuple[tuple[bytes, str], ...] = ()

    @classmethod
    def of(cls, token: str | None, others: Iterable[tuple[str, str]] = ()) -> Keys:
        """The owner's `token`, and those of `others`: pairs of an account and a key of its."""
        ours = [(token.encode(), LOCAL)] if token is not None else []
        return cls((*ours, *((key.encode(), account) for account, key in others)))

    def account(self, scope: Scope) -> str:
        """The account that a request asks for.

        Raises:
            Unauthorized: it shows no key of ours, or several.
        """
        if not self.accounts:
            return LOCAL
        shown = _shown(scope)
        right = [account for key, account in self.accounts if hmac.compare_digest(shown, key)]
        if not shown or not right:
            raise Unauthorized(WRONG, shown=shown != b"")
        return right[0]


def _shown(scope: Scope) -> bytes:
    """The key that a request shows; empty where it shows none."""
    plain, bearing = every(scope, API_KEY), every(scope, AUTHORIZATION)
    if len(plain) + len(bearing) > 1:
        raise Unauthorized(ONE, shown=True)
    if plain:
        return plain[0].strip()
    kind, _, key = (bearing[0] if bearing else b"").partition(b" ")
    return key.strip() if kind.lower() == b"bearer" else b""

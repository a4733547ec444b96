"""How long a server asks to be left alone: the header `Retry-After` of RFC 9110, section 10.2.3."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds from now, told as a number or as a date; None where it is not told or makes no sense."""
    told = headers.get("retry-after", "").strip()
    if not told:
        return None
    try:
        seconds = float(told)
    except ValueError:
        try:
            until = parsedate_to_datetime(told)
        except ValueError:
            return None
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        seconds = (until - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None

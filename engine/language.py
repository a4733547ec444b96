"""The language model of this engine, metered: every call is within the budget and in the ledger.

Optional: without LLM_PROVIDER nothing here is ever called, and nothing else needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date


class Purpose(StrEnum):
    """What a model is asked for: the ledger's columns."""

    ASK = "ask"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What one purpose took of one model on one day (of this machine's calendar)."""

    day: date
    purpose: str
    provider: str
    model: str
    calls: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    estimated: bool

"""The settings of memory: whose it is, how long things live, and how turns are recalled."""

from __future__ import annotations

from dataclasses import dataclass

from . import parsing
from .spec import setting


@dataclass(frozen=True)
class Remembering:
    """The part of `Settings` that only memory needs."""

    core: str | None = setting(
        None,
        parsing.text,
        "the name of a core that was made with `noctuary cores add`, or unset",
        "The core that commands and agents remember in when they name none. Unset: the default one.",
        unset="the default one",
    )
    user: str | None = setting(
        None,
        parsing.text,
        "a name, or unset",
        "The end user whose brain commands and agents use when they name none. Unset: the core's own brain.",
        unset="none",
    )
    lesson_days: int = setting(
        30,
        parsing.integer(1, 3650),
        "whole days, from 1 to 3650",
        "Days a lesson lives when it is not used; each use begins them anew.",
    )
    turn_minutes: int = setting(
        60,
        parsing.integer(1, 10_080),
        "whole minutes, from 1 to 10080",
        "Minutes in which a prepared turn can be recorded.",
    )
    recall_sources: int = setting(
        3,
        parsing.integer(1, 50),
        "a whole number from 1 to 50",
        "Turns that are given with a prepared turn, at most.",
    )

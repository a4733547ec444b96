"""What is killed in the midst of recording: turns that are prepared and recorded without end."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

from engine.language import Language
from engine.memory import Memory
from engine.memory.model import BrainKey
from engine.models.embedding.bundled import BundledEmbedder
from engine.notes import Notes
from engine.services import Services

if TYPE_CHECKING:
    from engine.database import Database
    from engine.settings import Settings

KEY = BrainKey(user="alice")


async def record(database: Database, settings: Settings) -> None:
    """Record, again and again, what is somebody's own: who it was stands in each turn."""
    notes = Notes(database, BundledEmbedder(), settings, Services())
    await notes.prepare()
    memory = Memory(database, settings, notes.embedders, Language(database, settings))
    for number in itertools.count():
        told = f"Turn {number} of {os.getpid()}: my name is Owl{number}."
        token = (await memory.prepare(KEY, told)).turn_token
        assert token
        await memory.record(KEY, token, f"Answer {number} of {os.getpid()}.")

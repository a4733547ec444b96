"""Memory: agents' turns become packets, packets become lessons, and a person throws out the wrong ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.memory import brains
from engine.memory.embeddings import EMBEDDER, Embeddings
from engine.memory.lessons import Lessons
from engine.memory.meaning import Meaning
from engine.memory.model import LOCAL
from engine.memory.synthesis import Synthesis

if TYPE_CHECKING:
    from engine.database import Database
    from engine.language import Language
    from engine.memory.meaning import Models
    from engine.memory.model import Core
    from engine.services import Services
    from engine.settings import Settings

__all__ = ["Memory"]


class Memory:
    """The memory of one process. `models` give vectors, `language` distils."""

    def __init__(self, database: Database, settings: Settings, models: Models, language: Language) -> None:
        self._database = database
        meaning = Meaning(models)
        self.lessons: Lessons = Lessons(database, meaning, settings)
        self.synthesis: Synthesis = Synthesis(database, meaning, self.lessons, language, settings)
        self.embeddings: Embeddings = Embeddings(database, meaning)

    def start(self, services: Services) -> None:
        """Keep vectors being made in the background."""
        services.start(EMBEDDER, self.embeddings.run)

    async def cores(self, account: str = LOCAL) -> list[Core]:
        """The cores of an account, the default one first."""
        return await brains.cores(self._database, account)

"""Messages between workers, panes and the application. Workers post them; handlers own all state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from engine import Engine
    from engine.errors import NoctuaryError
    from engine.notes.model import NotesStatus


class Flash(Message):
    """One line in place of the hints, until the next key. `text` may be hostile."""

    def __init__(self, text: str, *, error: bool = False) -> None:
        super().__init__()
        self.text = text
        self.error = error


class Opening(Message):
    """How far opening the engine has come, as a short sentence."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class EngineReady(Message):
    """The engine is open."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine


class EngineFailed(Message):
    """The engine could not be opened or started."""

    def __init__(self, error: NoctuaryError) -> None:
        super().__init__()
        self.error = error


class Started(Message):
    """The services of the engine run; so many folders are known, and these errors kept others away."""

    def __init__(self, folders: int, errors: Sequence[NoctuaryError] = ()) -> None:
        super().__init__()
        self.folders = folders
        self.errors = tuple(errors)


class Changed(Message):
    """Rows changed in these topics of the change feed; many changes make one message."""

    def __init__(self, topics: AbstractSet[str]) -> None:
        super().__init__()
        self.topics = topics


class StatusRead(Message):
    """The status of the notes was read; `error` says why not."""

    def __init__(self, status: NotesStatus | None, error: NoctuaryError | None = None) -> None:
        super().__init__()
        self.status = status
        self.error = error

"""The database layer: an embedded server or `DATABASE_URL`, behind one `Database`.

Importing this package is cheap; the driver comes with `Database.open`.
"""

from __future__ import annotations

from engine.database.database import Database
from engine.database.model import LOST, RECONNECTED, Change, DatabaseInfo, OnState

__all__ = ["LOST", "RECONNECTED", "Change", "Database", "DatabaseInfo", "OnState"]

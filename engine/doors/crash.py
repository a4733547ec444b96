"""The last resort: an error nobody foresaw becomes one sentence, and a file with the details."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING

from engine.doors import exits, output
from engine.errors import NoctuaryError
from engine.packages import explained
from engine.settings import Paths, mask
from engine.text.safe import visible

if TYPE_CHECKING:
    from types import TracebackType


def install() -> None:
    """Let `report` see what no handler took."""
    sys.excepthook = report


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback to a file of the state folder and exit with an error's status.

    An exit raised in the hook is what the interpreter exits with; its own status would be 1, which
    means "nothing found" here.
    """
    if issubclass(kind, KeyboardInterrupt):
        raise SystemExit(exits.INTERRUPTED)
    if isinstance(error, ModuleNotFoundError) and (missing := explained(error)):
        output.complain(missing.title, missing.message, missing.remedy)
        raise SystemExit(exits.ERROR)
    details = visible(mask("".join(traceback.format_exception(kind, error, trace))))
    output.complain(
        "Fault",
        f"{kind.__name__}: {mask(str(error))}.",
        f"This is a bug; its details are in {_keep(details)}.",
    )
    raise SystemExit(exits.ERROR)


def _keep(details: str) -> str:
    """The file that now holds the details, in the state folder or, failing that, the temporary one."""
    try:
        folder = str(Paths.of(os.environ).state)
        handle, name = tempfile.mkstemp(prefix="fault-", suffix=".txt", dir=folder)
    except (OSError, NoctuaryError):
        handle, name = tempfile.mkstemp(prefix="noctuary-fault-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(details)
    return name

"""The exit statuses of the command line, which scripts rely on."""

from __future__ import annotations

DONE = 0
FOUND_NOTHING = 1
ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

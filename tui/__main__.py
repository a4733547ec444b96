"""`python -m tui` is `noctuary`."""

from __future__ import annotations

import sys

# From a clone nobody has asked pip, which refuses an older Python; the imports below would be a traceback.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write(f"Noctuary needs Python 3.11 or later; this is {sys.version.split()[0]}.\n")
    sys.exit(2)

from tui.main import main

main()

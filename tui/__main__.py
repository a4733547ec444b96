"""`python -m tui` is `noctuary`, and both begin here, where nothing but Python has to be there."""

from __future__ import annotations

import sys

# From a clone nobody has asked pip, which refuses an older Python; the imports would be a traceback.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write(f"Noctuary needs Python 3.11 or later; this is {sys.version.split()[0]}.\n")
    sys.exit(2)


def run() -> None:
    """Run the command line, or say which package it cannot be run without."""
    try:
        from tui.main import main
    except ModuleNotFoundError as error:
        from engine.packages import explained

        missing = explained(error)
        if missing is None:
            raise
        sys.stderr.write(f"{missing.title}: {missing}\n")
        sys.exit(2)
    main()


if __name__ == "__main__":
    run()

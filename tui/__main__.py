"""`python -m tui` is `noctuary`."""

from __future__ import annotations

from tui.main import main

main()

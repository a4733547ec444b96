"""The examination of an installation: each part is tried for real and answers with one sentence.

A part that cannot be tried because another is broken says so and counts as a warning: the failure
to mend is the other's.
"""

from __future__ import annotations

from engine.doctor.check import Check, State
from engine.doctor.examination import examine

__all__ = ["Check", "State", "examine"]

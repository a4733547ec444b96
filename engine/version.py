"""The version of this program; the package's metadata is made from it."""

from __future__ import annotations

VERSION = "0.1.0"

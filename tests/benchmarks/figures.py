"""The table the benchmarks print: what was measured, its yardstick of the same run, what must be."""

from __future__ import annotations

import os
import platform
import statistics
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def data(relative: str) -> Path:
    """A file or folder of the shared data; the test skips where it is missing."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"the shared data has no {relative} here")
    return path


def unpack(relative: str, into: Path) -> Path:
    """An archive of the shared data, unpacked."""
    with tarfile.open(data(relative)) as archive:
        archive.extractall(into, filter="data")
    return into


def fresh(base: Path) -> dict[str, str]:
    """The environment of a new user: folders of its own, empty."""
    folders = {f"XDG_{name}_HOME": str(base / name.lower()) for name in ("DATA", "CONFIG", "STATE", "CACHE")}
    return {"PATH": os.environ["PATH"], "HOME": str(base), "LANG": "C.UTF-8", **folders}


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: `share` of the values are not above it."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def machine() -> str:
    """What it was measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f}"
    )


@dataclass(frozen=True)
class Figure:
    """One row: its `value` with a unit, the `yardstick` beside it, what `must` be, and whether it is."""

    what: str
    value: str
    yardstick: str
    must: str
    holds: bool

    def __str__(self) -> str:
        mark = "ok  " if self.holds else "MISS"
        return f"{mark} {self.what}: {self.value}  [{self.yardstick}]  must be {self.must}"


def show(*figures: Figure) -> None:
    """Print the rows and fail on those that do not hold."""
    print()
    print(f"     {machine()}")
    for figure in figures:
        print(figure, flush=True)
    missed = [figure.what for figure in figures if not figure.holds]
    assert not missed, f"not what it must be: {'; '.join(missed)}"

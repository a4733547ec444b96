"""What tests that break things need: the vault of the integration tests, and processes to be killed."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from tests.faults.nursery import Nursery
from tests.integration.conftest import embedder, installation, live, model, vault  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SEED = "NOCTUARY_FAULT_SEED"


@pytest.fixture
async def nursery() -> AsyncIterator[Nursery]:
    """A process that bears engines; those that still live are killed when the test is over."""
    held = await Nursery.start()
    yield held
    await held.close()


@pytest.fixture
def chance() -> random.Random:
    """Chance with a seed that a failing test shows; the variable NOCTUARY_FAULT_SEED gives it again."""
    seed = int(os.environ.get(SEED) or random.randrange(2**32))
    print(f"{SEED}={seed}")  # noqa: T201 - shown when the test fails
    return random.Random(seed)

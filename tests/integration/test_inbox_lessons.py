"""The inbox counts lessons that are new or expire, and clusters that wait, in all brains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.inbox import Inbox
from tests.learning import ALICE, BOB, NO_TABS, PNPM, TABS

if TYPE_CHECKING:
    from engine.inbox import InboxItem
    from tests.integration.vault import Vault
    from tests.learning import Mind


async def test_what_waits_of_lessons(vault: Vault, mind: Mind) -> None:
    inbox = Inbox(vault.database, vault.notes, lessons=mind.lessons)

    async def items() -> dict[str, InboxItem]:
        return {item.kind: item for item in await inbox.items()}

    assert await items() == {}
    await mind.learnt(TABS, key=ALICE)
    await mind.learnt(NO_TABS, key=BOB)
    found = await items()
    assert list(found) == ["lessons_new"]
    assert (found["lessons_new"].count, found["lessons_new"].pane) == (2, "lessons")
    assert found["lessons_new"].oldest == (await mind.lessons.audit(2))[1].at
    await mind.lessons.visit()
    assert await items() == {}
    await mind.as_if_days_later(25, key=BOB)
    await mind.said(*PNPM, key=BOB)
    await mind.synthesis.run(BOB, actor="human")
    found = await items()
    assert {kind: item.count for kind, item in found.items()} == {
        "lessons_expiring": 1,
        "clusters_waiting": 1,
    }
    assert found["clusters_waiting"].oldest == (await mind.synthesis.waiting())[0].created_at
    assert found["lessons_expiring"].oldest is None
    await mind.learnt(TABS, key=ALICE)
    grown = (await items())["lessons_new"]
    assert (grown.count, grown.oldest) == (1, (await mind.lessons.audit(1))[0].at)

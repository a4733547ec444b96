"""Notes in languages the model does not read: told in the status, with the model that reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.doors.finishing import sentences
from engine.models.embedding.bundled import BundledEmbedder
from engine.notes import Notes, languages
from engine.services import Services

if TYPE_CHECKING:
    from tests.integration.vault import Vault

ENGLISH, CHINESE = (
    "The owl hunts at night in the old orchard, note {}.\n",
    "猫头鹰在夜里捕猎白天在树洞里睡觉第{}篇\n",
)


class Polyglot(BundledEmbedder):
    """The real model, which says that it reads everything."""

    def reads(self, text: str) -> float:
        return 1.0


async def told(vault: Vault) -> str:
    await vault.notes.embedders.judge()
    status = await vault.notes.status()
    assert status.embedding is not None
    if status.embedding.suggestion:
        assert status.embedding.suggestion in sentences(status)
    return status.embedding.suggestion


async def test_another_model_is_suggested_from_a_fifth_of_the_notes_on(vault: Vault) -> None:
    for number in range(9):
        vault.write(f"{number}.md", ENGLISH.format(number))
    vault.write("zh.md", CHINESE.format(0))
    await vault.index()
    assert await told(vault) == ""
    for number in range(2):
        vault.write(f"zh{number}.md", CHINESE.format(number + 1))
    await vault.index()
    assert "25% of the notes" in await told(vault)
    assert "noctuary models use multilingual" in await told(vault)
    for number in range(3):
        vault.write(f"late{number}.md", ENGLISH.format(100 + number))
    (vault.root / "zh.md").unlink()
    await vault.index()
    assert await told(vault) == ""


async def test_the_screen_hears_of_it_and_another_model_is_judged_by_itself(vault: Vault) -> None:
    for number in range(3):
        vault.write(f"{number}.md", CHINESE.format(number))
    await vault.index()
    # Models of its own: the one before is closed when another takes its place.
    notes = Notes(vault.database, BundledEmbedder(), vault.settings, Services())
    await notes.prepare()
    changes = vault.database.feed.subscribe("service")
    await notes.embedders.judge()
    assert notes.embedders.suggestion
    assert changes._waiting, "the status line is drawn anew"
    await notes.embedders.change(Polyglot())
    assert notes.embedders.suggestion == ""
    await notes.embedders.judge()
    assert notes.embedders.suggestion == ""
    await notes.embedders.close()


async def test_notes_without_letters_and_an_empty_index_suggest_nothing(vault: Vault) -> None:
    assert await told(vault) == ""
    for number in range(3):
        vault.write(f"{number}.md", f"{number} | 1.0.21\n")
    await vault.index()
    assert await told(vault) == ""


async def test_what_hardly_changed_is_not_judged_again(vault: Vault) -> None:
    for number in range(20):
        vault.write(f"{number}.md", ENGLISH.format(number))
    await vault.index()
    await told(vault)
    vault.notes.embedders.unread = 0.9
    vault.write("one.md", ENGLISH.format("one"))
    await vault.index()
    assert "90%" in await told(vault)


def test_the_suggestion_begins_where_it_says() -> None:
    assert languages.suggestion(languages.MUCH - 0.01, "m") == ""
    assert "20%" in languages.suggestion(languages.MUCH, "m")

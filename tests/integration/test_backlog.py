"""The embedding backlog: behind the words, newest first, shared, and never silent about what failed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from engine.errors import ModelError
from engine.inbox import Inbox
from engine.models.embedding import courtesy
from engine.models.embedding.courtesy import QUESTIONS
from engine.notes import backlog
from engine.notes.backlog import Backlog
from engine.notes.model import DriftCause, Mode
from tests.integration.model_process import process
from tests.integration.vault import AttentiveEmbedder
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tests.integration.vault import Vault


class Choosy(AttentiveEmbedder):
    """The real model, which stumbles over a word, or over everything."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any(self.word in text for text in texts):
            raise ModelError(f"cannot read {self.word!r}")
        return await super().passages(texts)


async def using(vault: Vault, embedder: AttentiveEmbedder) -> Backlog:
    made = Backlog(vault.database, embedder)
    await made.register()
    return made


class Polite(AttentiveEmbedder):
    """The real model, which remembers whether it was asked to let questions go first, and was told of them."""

    def __init__(self) -> None:
        super().__init__()
        self.patient: list[bool] = []
        self.pauses: list[float] = []

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.patient.append(courtesy._patient.get())
        return await super().passages(texts)

    async def query(self, text: str) -> NDArray[np.float32]:
        self.pauses.append(QUESTIONS.pause())
        return await super().query(text)


async def states(vault: Vault) -> dict[str, int]:
    return dict(await vault.rows("SELECT state, count(*) FROM embedding GROUP BY state"))


async def test_no_batch_starts_while_a_job_waits_or_is_in_hand(
    vault: Vault, embedder: AttentiveEmbedder
) -> None:
    await vault.save("a.md", "owls\n")
    vectors = await using(vault, embedder)
    await vault.enqueue("b.md")
    assert await vectors.step() is False
    claimed = await vault.claim("w")
    assert await vectors.step() is False
    assert embedder.asked == []
    await vault.rows("DELETE FROM job WHERE id = %s", claimed[0].id)
    assert await vectors.step() is True
    assert embedder.asked == ["owls"]


async def test_the_newest_notes_are_embedded_first(vault: Vault, embedder: AttentiveEmbedder) -> None:
    for number in (3, 1, 2):
        vault.write(f"{number}.md", f"text {number}\n", mtime=1_600_000_000 + number)
    await vault.index()
    await (await using(vault, embedder)).step()
    assert embedder.asked == ["text 3", "text 2", "text 1"]


async def test_an_old_text_in_a_new_note_is_embedded_sooner(
    vault: Vault, embedder: AttentiveEmbedder
) -> None:
    vault.write("old.md", "old text\n", mtime=1_600_000_000)
    vault.write("new.md", "new text\n", mtime=1_600_000_100)
    await vault.index()
    vault.write("copy.md", "old text\n", mtime=1_600_000_200)
    await vault.index()
    await (await using(vault, embedder)).step()
    assert embedder.asked == ["old text", "new text"]


async def test_words_are_found_and_vectors_follow_under_running_services(
    vault: Vault, embedder: AttentiveEmbedder
) -> None:
    await vault.notes.start(watch=False, work=True, embed=True)
    await vault.notes.ingest(vault.write("a.md", "Owls hunt at night.\n"))
    await eventually(lambda: vault.found("owls"))
    assert await eventually(lambda: states(vault)) in ({"pending": 1}, {"embedded": 1})

    async def embedded() -> bool:
        return await states(vault) == {"embedded": 1}

    await eventually(embedded)
    assert embedder.asked == ["Owls hunt at night."]


async def test_a_text_no_note_holds_any_more_is_not_embedded(
    vault: Vault, embedder: AttentiveEmbedder
) -> None:
    await vault.save("a.md", "first\n")
    await vault.save("a.md", "second\n")
    await (await using(vault, embedder)).run_until_idle()
    assert embedder.asked == ["second"]
    progress = (await vault.notes.status()).embedding
    assert progress is not None
    assert (progress.embedded, progress.pending, progress.total) == (1, 0, 1)


async def test_several_processes_share_without_doing_anything_twice(
    vault: Vault, embedder: AttentiveEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "BATCH", 4)
    for number in range(60):
        vault.write(f"{number}.md", f"text {number}\n")
    await vault.index()
    sharing = [await using(vault, embedder) for _ in range(3)]
    await asyncio.gather(*(each.run_until_idle() for each in sharing))
    assert sorted(embedder.asked) == sorted(f"text {number}" for number in range(60))
    assert await states(vault) == {"embedded": 60}
    assert sum(len(each._finished) > 0 for each in sharing) > 1, "more than one had a share"


async def test_a_cancelled_batch_leaves_no_trace(vault: Vault, embedder: AttentiveEmbedder) -> None:
    for number in range(40):
        vault.write(f"{number}.md", f"text {number} " * 200)
    await vault.index()
    vectors = await using(vault, embedder)
    task = asyncio.create_task(vectors.run())
    while not embedder.asked:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert set(await states(vault)) == {"pending"}
    assert await vault.rows("SELECT 1 FROM embedding FOR UPDATE NOWAIT")


async def test_a_passage_the_model_cannot_embed_fails_alone_and_waits_for_a_human(vault: Vault) -> None:
    for path, text in (("a.md", "owls hunt"), ("b.md", "poison here"), ("c.md", "larks sing")):
        vault.write(path, text)
    await vault.index()
    choosy = Choosy("poison")
    await (await using(vault, choosy)).run_until_idle()
    assert await states(vault) == {"embedded": 2, "failed": 1}
    assert await vault.rows("SELECT error FROM embedding WHERE state = 'failed'") == [
        ("cannot read 'poison'",)
    ]
    items = {item.kind: item for item in await Inbox(vault.database, vault.notes).items()}
    assert (items["failed_vectors"].count, items["failed_vectors"].pane) == (1, "jobs")
    assert await vault.found("poison") == ["b.md"], "its words are found all the same"

    (passage,) = await vault.notes.failed_passages()
    assert (passage.reference, passage.folder) == ("b.md:L1-L1", vault.root)
    assert passage.error == "cannot read 'poison'"
    assert await vault.notes.failed_passages(text="POISON") == [passage]
    assert await vault.notes.failed_passages(text="c.md") == []
    assert await vault.notes.failed_passage_count() == 1

    assert await vault.notes.retry([]) == await vault.notes.retry_passages([]) == 0
    assert await vault.notes.retry_passages([passage.id]) == 1
    assert await vault.notes.failed_passages() == []
    await (await using(vault, choosy)).run_until_idle()
    assert await vault.notes.retry() == 1
    choosy.word = "nothing of the kind"
    await (await using(vault, choosy)).run_until_idle()
    assert await states(vault) == {"embedded": 3}
    assert await Inbox(vault.database, vault.notes).items() == []
    await choosy.close()


async def test_a_model_that_embeds_nothing_fails_no_passage_and_says_so(vault: Vault) -> None:
    """A model file that is missing is no fault of eighty thousand passages."""
    await vault.save("a.md", "owls\n")
    broken = Choosy("")
    with pytest.raises(ModelError, match="cannot read"):
        await (await using(vault, broken)).run_until_idle()
    assert await states(vault) == {"pending": 1}
    await broken.close()


async def test_a_change_of_model_keeps_the_spaces_apart(vault: Vault, embedder: AttentiveEmbedder) -> None:
    """The old vectors stay where they are; the new ones follow; a search sees one space only."""
    await vault.save("a.md", "Owls hunt at night.\n", embed=True)
    await vault.save("b.md", "Larks sing at dawn.\n", embed=True)
    (other,) = (await vault.rows("SELECT register_model('other', 384, 'bundled', 'other')"))[0]
    # The opposite of each true vector: in such a space everything is far from where it belongs.
    await vault.rows(
        "INSERT INTO embedding (model, passage, state, vector) SELECT %s, passage, 'embedded',"
        " (array_fill(0::real, ARRAY[384])::vector - vector::vector)::halfvec FROM embedding",
        other,
    )
    (hit,) = (await vault.notes.search("owls hunting", mode=Mode.VECTOR, k=1)).citations
    assert (hit.path, hit.distance is not None and hit.distance < 0.6) == ("a.md", True)
    assert len((await vault.notes.search("owls", mode=Mode.VECTOR, k=10, max_distance=2)).citations) == 2


async def test_vectors_of_the_old_model_stay_while_the_new_ones_are_made(
    vault: Vault, embedder: AttentiveEmbedder
) -> None:
    await vault.save("a.md", "Owls hunt at night.\n", embed=True)
    await vault.rows("SELECT register_model('old', 384, 'bundled', 'old')")
    await vault.rows("UPDATE embedding SET model = (SELECT id FROM model WHERE name = 'old')")
    assert (await vault.notes.drift()).counts()[DriftCause.OTHER_MODEL] == 1
    embedder.asked.clear()
    await vault.notes.work_until_idle()
    assert embedder.asked == ["Owls hunt at night."]
    assert await vault.value("SELECT count(DISTINCT model) FROM embedding WHERE state = 'embedded'") == 2
    assert (await vault.notes.drift()).counts()[DriftCause.OTHER_MODEL] == 0


async def test_fill_gives_every_live_passage_a_pending_vector_once(
    vault: Vault, embedder: AttentiveEmbedder
) -> None:
    for path, text in (("a.md", "owls"), ("b.md", "larks"), ("c.md", "owls")):
        vault.write(path, text, mtime=1_600_000_000)
    vault.write("newest.md", "owls", mtime=1_700_000_000)
    await vault.index()
    await vault.save("gone.md", "gone")
    (vault.root / "gone.md").unlink()
    await vault.index()
    await vault.rows("DELETE FROM embedding")
    vectors = await using(vault, embedder)
    for _ in range(2):
        await vectors.fill()
    rows = await vault.rows(
        "SELECT text, priority, state FROM embedding JOIN passage ON passage.id = passage ORDER BY text"
    )
    assert rows == [
        ("larks", 1_600_000_000 * 10**9, "pending"),
        ("owls", 1_700_000_000 * 10**9, "pending"),
    ]


async def test_a_model_known_with_another_dimension_is_refused(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wider(AttentiveEmbedder):
        dimension = 512

    wider = Wider()
    with pytest.raises(ModelError, match="dimension 384, not 512"):
        await using(vault, wider)
    await wider.close()


async def test_progress_and_the_time_left(
    vault: Vault, embedder: AttentiveEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "BATCH", 5)
    for number in range(20):
        vault.write(f"{number}.md", f"text {number}\n")
    await vault.index()
    vectors = await using(vault, embedder)
    for _ in range(3):
        await vectors.step()
    async with vault.database.connection() as connection:
        progress = await vectors.progress(connection)
    assert (progress.embedded, progress.pending, progress.total) == (15, 5, 20)
    assert progress.rate > 0
    assert progress.seconds_left == pytest.approx(5 / progress.rate)
    await vectors.run_until_idle()
    async with vault.database.connection() as connection:
        progress = await vectors.progress(connection)
    assert (progress.pending, progress.rate, progress.seconds_left) == (0, 0, None)


async def test_the_backlog_lets_questions_go_first(vault: Vault) -> None:
    polite = Polite()
    vectors = await using(vault, polite)
    await vault.save("a.md", "owls\n")
    await vectors.fill()
    await vectors.run_until_idle()
    assert polite.patient == [True]


async def test_a_search_is_a_question(vault: Vault) -> None:
    polite = Polite()
    await vault.save("a.md", "owls\n")
    async with process(vault, polite, work=False) as notes:
        await notes.embedders.settle()
        await notes.search("owls")
    assert polite.pauses
    assert all(polite.pauses)

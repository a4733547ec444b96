"""A change of the embedding model: nobody notices but by better answers, and it can be taken back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import ModelError, SettingsError
from engine.models.embedding.base import OLLAMA
from engine.models.embedding.bundled import BundledEmbedder
from engine.models.embedding.ollama import OllamaEmbedder
from engine.notes import Notes, backlog, interim
from engine.notes.embedders import EMBEDDER, wanted
from engine.notes.model import Mode
from engine.services import Services
from tests.integration.model_process import answers, holding, process, texts
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from tests.integration.vault import Vault
    from tests.scripted_ollama import ScriptedOllama

BUNDLED_ID = "all-MiniLM-L6-v2-int8"


@pytest.fixture
async def fresh() -> AsyncIterator[BundledEmbedder]:
    """A model of the test's own: it is closed when another takes its place."""
    embedder = BundledEmbedder()
    yield embedder
    await embedder.close()


def named(ollama: ScriptedOllama) -> dict[str, Any]:
    """Settings that name the server's model."""
    sources = {"embeddings_provider": "environment (EMBEDDINGS_PROVIDER)"}
    return {
        "embeddings_provider": OLLAMA,
        "embeddings_model": "all-minilm",
        "ollama_url": ollama.url,
        "sources": sources,
    }


_READ_LARKS = """
    SELECT count(*) = 1 FROM embedding JOIN passage ON passage.id = embedding.passage
    WHERE passage.text LIKE 'Larks%%' AND embedding.state = 'embedded'
        AND embedding.model = (SELECT id FROM model WHERE model = 'other')
"""


async def _is(found: Awaitable[object], wanted: object) -> bool:
    return await found == wanted


async def nearest(notes: Notes, query: str) -> str:
    """The note that is found by meaning."""
    found = await notes.search(query, mode=Mode.VECTOR)
    return found.citations[0].path if found.citations else ""


async def embedded(vault: Vault) -> dict[str, int]:
    """Vectors there are by provider."""
    return dict(
        await vault.rows(
            "SELECT model.provider, count(*) FROM embedding JOIN model ON model.id = embedding.model"
            " WHERE state = 'embedded' GROUP BY 1"
        )
    )


async def test_the_old_model_answers_until_the_new_one_has_its_vectors(
    birds: Vault, fresh: BundledEmbedder, ollama: ScriptedOllama
) -> None:
    ollama.held = holding("Larks")
    async with process(birds, fresh, ollama_url=ollama.url) as notes:
        chosen = await notes.embedders.choose(OLLAMA, "all-minilm")
        assert chosen.startswith("ollama:all-minilm")
        await ollama.waiting.wait()
        status = await notes.status(exact=True)
        assert status.embedding is not None
        assert (status.embedding.model, status.embedding.serving) == (chosen, BUNDLED_ID)
        assert await nearest(notes, "when do owls hunt") == "owls.md", "the scripted model's say nothing"
        birds.write("new.md", "A new note about wrens.\n")
        await birds.notes.index_all()
        await eventually(lambda: _is(nearest(notes, "a note on wrens"), "new.md"))
        ollama.gate.set()
        await eventually(lambda: answers(notes) == chosen)
        status = await notes.status(exact=True)
        assert status.embedding is not None
        assert (status.embedding.pending, status.embedding.serving) == (0, "")
        assert await embedded(birds) == {"bundled": 4, "ollama": 4}
        birds.write("later.md", "What comes later is read by the new model alone.\n")
        await birds.notes.index_all()
        await eventually(lambda: _is(embedded(birds), {"bundled": 4, "ollama": 5}))


async def test_the_new_model_waits_while_what_was_saved_meanwhile_is_read(
    birds: Vault, fresh: BundledEmbedder, ollama: ScriptedOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "BATCH", 1)
    ollama.models["other:latest"] = {}

    def read_by(model: str) -> list[str]:
        """What was asked of a model, but for trials of whether it works."""
        asked = [each for each in ollama.asked if each.body.get("model", "").startswith(model)]
        return [text for each in asked for text in texts(each) if len(text) > len("plain words")]

    async with process(birds, fresh, ollama_url=ollama.url) as notes:
        first = await notes.embedders.choose(OLLAMA, "all-minilm")
        await eventually(lambda: answers(notes) == first)
        ollama.held = lambda asked: any("Larks" in text or "wrens" in text for text in texts(asked))
        second = await notes.embedders.choose(OLLAMA, "other")
        await ollama.waiting.wait()
        large, ollama.gate = ollama.gate, asyncio.Event()
        birds.write("new.md", "A new note about wrens.\n")
        await birds.notes.index_all()
        await eventually(lambda: "A new note about wrens." in read_by("all-minilm"))
        before = read_by("other")
        large.set()
        await eventually(lambda: birds.value(_READ_LARKS))
        for _ in range(10):
            await notes.status()
        assert read_by("other") == before
        ollama.gate.set()
        await eventually(lambda: answers(notes) == second)
        assert set(read_by("other")) > set(before)


async def test_a_model_that_answers_no_more_does_not_hold_up_the_new_one(
    birds: Vault,
    fresh: BundledEmbedder,
    ollama: ScriptedOllama,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked: list[object] = []

    async def fail(*_arguments: object) -> None:
        """It fails on a text and on plain words, and gives no answer at all the next time."""
        asked.append(_arguments)
        if len(asked) > 2:
            await asyncio.Event().wait()
        raise ModelError("It is gone.")

    monkeypatch.setattr(interim, "RETRY_PAUSE", 0)
    ollama.held = holding("Larks")
    async with process(birds, fresh, ollama_url=ollama.url) as notes:
        chosen = await notes.embedders.choose(OLLAMA, "all-minilm")
        await ollama.waiting.wait()
        monkeypatch.setattr(BundledEmbedder, "passages", fail)
        birds.write("new.md", "A new note about wrens.\n")
        await birds.notes.index_all()
        await eventually(lambda: "still answers: It is gone." in caplog.text)
        await eventually(lambda: len(asked) > 2)
        ollama.gate.set()
        await eventually(lambda: answers(notes) == chosen)
        assert await embedded(birds) == {"bundled": 3, "ollama": 4}
        assert notes.faults() == ()


async def test_indexing_without_a_console_gives_both_models_what_is_new(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    model = OllamaEmbedder(ollama.url, "all-minilm")
    async with process(birds, model, work=False, **named(ollama)) as notes:
        birds.write("new.md", "A new note about wrens.\n")
        await notes.index_all()
        await notes.work_until_idle()
        assert await embedded(birds) == {"bundled": 4, "ollama": 4}
        assert answers(notes).startswith("ollama:")


async def test_every_process_takes_the_choice_up_and_changes_at_the_same_moment(
    birds: Vault, fresh: BundledEmbedder, ollama: ScriptedOllama
) -> None:
    ollama.held = holding("Larks")
    url = {"ollama_url": ollama.url}
    async with (
        process(birds, fresh, **url) as worker,
        process(birds, fresh, work=False, **url) as reader,
    ):
        chosen = await reader.embedders.choose(OLLAMA, "all-minilm")
        await ollama.waiting.wait()
        await eventually(lambda: reader.embedders.wanted == worker.embedders.wanted == "ollama/all-minilm")
        assert answers(worker) == answers(reader) == BUNDLED_ID
        ollama.gate.set()
        await eventually(lambda: answers(worker) == answers(reader) == chosen)


async def test_what_a_process_with_another_model_indexed_is_read_too(
    birds: Vault, fresh: BundledEmbedder, ollama: ScriptedOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`birds` goes on with the bundled model, as a process does whose settings name it."""
    monkeypatch.setattr(backlog, "FILL_AGAIN", 0.0)
    async with process(birds, fresh, ollama_url=ollama.url) as notes:
        chosen = await notes.embedders.choose(OLLAMA, "all-minilm")
        await eventually(lambda: answers(notes) == chosen)
        await notes._services.stop("worker")
        birds.write("new.md", "A new note about wrens.\n")
        await birds.index()
        await eventually(
            lambda: birds.value(
                "SELECT count(*) = 4 FROM embedding WHERE state = 'embedded'"
                " AND model = (SELECT id FROM model WHERE provider = 'ollama')"
            )
        )


async def test_going_back_is_at_once_or_when_the_old_model_has_caught_up(
    birds: Vault, fresh: BundledEmbedder, ollama: ScriptedOllama
) -> None:
    async with process(birds, fresh, ollama_url=ollama.url) as notes:
        chosen = await notes.embedders.choose(OLLAMA, "all-minilm")
        await eventually(lambda: answers(notes) == chosen)
        await notes.embedders.choose("bundled", None)
        await eventually(lambda: notes.embedders.wanted.startswith("bundled"))
        await eventually(lambda: answers(notes) == BUNDLED_ID)
        # Meanwhile a note comes that only the other model has seen.
        await notes.embedders.choose(OLLAMA, "all-minilm")
        await eventually(lambda: answers(notes) == chosen)
        birds.write("new.md", "A new note about wrens.\n")
        await birds.notes.index_all()
        await eventually(
            lambda: birds.value(
                "SELECT count(*) = 4 FROM embedding WHERE state = 'embedded'"
                " AND model = (SELECT id FROM model WHERE provider = 'ollama')"
            )
        )
        seen: list[str] = []
        await notes.embedders.choose("bundled", None)

        def back() -> bool:
            seen.append(answers(notes))
            return seen[-1] == BUNDLED_ID

        await eventually(back)
        assert set(seen) <= {chosen, BUNDLED_ID}
        assert await birds.value("SELECT count(*) FROM embedding WHERE state = 'pending'") == 0


async def test_a_server_that_is_not_there_yet_is_told_and_taken_up_when_it_comes(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    await ollama.stop()
    model = OllamaEmbedder(ollama.url, "all-minilm")
    async with process(birds, model, **named(ollama)) as notes:
        await eventually(lambda: notes.embedders.trouble)
        status = await notes.status(exact=True)
        assert status.embedding is not None
        assert f"Ollama does not answer at {ollama.url}" in status.embedding.trouble
        assert [fault.service for fault in status.faults] == [EMBEDDER]
        found = await notes.search("owls hunt")
        assert found.citations[0].path == "owls.md", "the model that is complete answers"
        birds.write("new.md", "A new note about wrens.\n")
        await birds.notes.index_all()
        await eventually(lambda: _is(nearest(notes, "a note on wrens"), "new.md"))
        await ollama.start()
        await eventually(lambda: answers(notes).startswith("ollama:"), 60)
        assert notes.embedders.trouble == ""
        await eventually(lambda: notes.faults() == ())


async def test_without_any_vectors_a_search_goes_by_words_and_says_why(
    vault: Vault, ollama: ScriptedOllama
) -> None:
    vault.write("owls.md", "Owls hunt at night.\n")
    await vault.index()
    await vault.rows("UPDATE model SET complete_at = NULL")
    await ollama.stop()
    model = OllamaEmbedder(ollama.url, "all-minilm")
    services = Services()
    notes = Notes(vault.database, model, replace(vault.settings, **named(ollama)), services)
    await notes.prepare()
    found = await notes.search("owls")
    assert [hit.path for hit in found.citations] == ["owls.md"]
    assert found.notes == ("Searched by keyword alone: The index has no vectors of all-minilm yet.",)
    with pytest.raises(ModelError, match="no vectors of all-minilm yet"):
        await notes.search("owls", mode=Mode.VECTOR)
    await model.close()


async def test_a_model_that_was_pulled_anew_is_another_space(vault: Vault, ollama: ScriptedOllama) -> None:
    vault.write("owls.md", "Owls hunt at night.\n")
    await vault.index()
    first = OllamaEmbedder(ollama.url, "all-minilm")
    async with process(vault, first, **named(ollama)) as notes:
        await eventually(lambda: answers(notes).startswith("ollama:"))
        before = answers(notes)
    ollama.digest = "f" * 64
    second = OllamaEmbedder(ollama.url, "all-minilm")
    async with process(vault, second, **named(ollama)) as notes:
        await eventually(lambda: answers(notes).startswith("ollama:") and answers(notes) != before)
    assert await vault.value("SELECT count(*) FROM model WHERE provider = 'ollama'") == 2


async def test_what_the_settings_name_is_not_chosen_away(birds: Vault, fresh: BundledEmbedder) -> None:
    sources = {"embeddings_provider": "config.toml"}
    async with process(birds, fresh, work=False, sources=sources) as notes:
        with pytest.raises(SettingsError, match=r"named by the settings \(from config.toml\)"):
            await notes.embedders.choose(OLLAMA, "all-minilm")


async def test_a_model_that_does_not_work_is_not_chosen(
    birds: Vault, fresh: BundledEmbedder, ollama: ScriptedOllama
) -> None:
    async with process(birds, fresh, work=False, ollama_url=ollama.url) as notes:
        with pytest.raises(ModelError, match="has no model"):
            await notes.embedders.choose(OLLAMA, "nonesuch")
        with pytest.raises(SettingsError, match="not a provider of embedding models"):
            await notes.embedders.choose("cloud", None)
        opened = await wanted(birds.database, birds.settings)
        assert opened.provider == "bundled"
        await opened.close()


async def test_a_model_that_is_not_in_use_can_be_forgotten(
    birds: Vault, fresh: BundledEmbedder, ollama: ScriptedOllama
) -> None:
    async with process(birds, fresh, ollama_url=ollama.url) as notes:
        chosen = await notes.embedders.choose(OLLAMA, "all-minilm")
        await eventually(lambda: answers(notes) == chosen)
        with pytest.raises(ModelError, match="is in use"):
            await notes.embedders.forget(chosen)
        with pytest.raises(ModelError, match="It knows: all-MiniLM"):
            await notes.embedders.forget("nonesuch")
        await notes.embedders.forget(BUNDLED_ID)
        assert [row.name for row in await notes.embedders.listing()] == [chosen]
        assert (
            await birds.value("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'embedding_vector_%%'")
            == 1
        )
        assert (await notes.search("owls", mode=Mode.VECTOR, max_distance=2)).citations

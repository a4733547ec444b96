"""Models compared by labelled questions: each is asked as search asks, and nothing of what answers changes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import DatasetError, FolderError, ModelError, SettingsError
from engine.models.embedding.bundled import BundledEmbedder
from engine.notes import backlog, comparing
from engine.notes.compared import KEYWORDS
from engine.notes.comparing import Comparer
from engine.notes.model import Mode
from tests.integration.model_process import answers, holding, process
from tests.scripted_ollama import Answer
from tests.support import eventually

if TYPE_CHECKING:
    from engine.notes.compared import CompareStep
    from tests.integration.vault import Vault
    from tests.scripted_ollama import Asked, ScriptedOllama

BUNDLED_ID = "all-MiniLM-L6-v2-int8"
OTHER_ID = "ollama:all-minilm@0123456789ab"
OTHER = ("ollama", "all-minilm")
KNOWMAN = Path(__file__).parents[2].parent / "shared" / "data" / "knowman"

QUESTIONS = [
    {"id": "owls", "question": "when do owls hunt", "expect": "citation", "expect_path_contains": "owls"},
    {"id": "sing", "question": "larks", "expect": "citation", "expect_lines": "larks.md:L1-L5", "k": 1},
    {"id": "win", "question": "who won the last world cup", "expect": "negative"},
]


def dataset(vault: Vault, *questions: dict[str, Any]) -> Path:
    file = vault.root.parent / "asked.json"
    file.write_text(json.dumps(questions or QUESTIONS))
    return file


def comparer(vault: Vault, ollama: ScriptedOllama, **changes: Any) -> Comparer:
    return Comparer(vault.database, replace(vault.settings, ollama_url=ollama.url, **changes), vault.notes)


async def standing(vault: Vault) -> tuple[object, ...]:
    """What decides which model answers."""
    return (
        await vault.rows("SELECT provider, model FROM chosen_model"),
        await vault.rows("SELECT name, complete_at FROM model WHERE complete_at IS NOT NULL"),
        answers(vault.notes),
    )


async def test_each_model_is_asked_and_what_answers_stays_as_it_is(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    before = await standing(birds)
    async with process(birds, BundledEmbedder(), work=False, ollama_url=ollama.url) as running:
        found = await comparer(birds, ollama).compare(dataset(birds), [("bundled", None), OTHER])
        assert answers(running) == BUNDLED_ID
        await running.embedders.refresh()
        assert answers(running) == BUNDLED_ID
    assert await standing(birds) == before
    bundled, other, keywords = found.rows
    assert (bundled.name, other.name, keywords.name) == (BUNDLED_ID, OTHER_ID, KEYWORDS)
    assert (bundled.in_use, other.in_use) == (True, False)
    assert [(row.embedded, row.passages) for row in (bundled, other)] == [(3, 3), (3, 3)]
    assert found.k == (3, 1, 3)
    assert bundled.right == {"owls", "sing", "win"}
    assert bundled.score is not None
    assert bundled.score.mrr == 1
    assert [each.cited for each in bundled.answers] == [("owls.md:L1-L1",), ("larks.md:L1-L1",), ()]
    assert {"owls", "sing"} <= keywords.right
    assert keywords.meaning is None
    assert found.best is bundled
    assert all(row.score and row.score.median_ms > 0 for row in found.rows)


async def test_it_finds_what_search_finds(birds: Vault, ollama: ScriptedOllama) -> None:
    for number in range(12):
        birds.write(f"more/{number}.md", f"Bird number {number} sings at {number} o'clock.\n")
    await birds.index(embed=True)
    asked = [
        {"id": text, "question": text, "expect": "citation", "expect_path_contains": "owls", "k": 5}
        for text in ("birds that sing", "owls at night", "what does number 7 do")
    ]
    found = await comparer(birds, ollama).compare(dataset(birds, *asked), [("bundled", None)])
    row = found.rows[0]
    for mode, judged in ((Mode.HYBRID, row.answers), (Mode.VECTOR, row.meaning_answers)):
        for each in judged:
            searched = await birds.notes.search(each.id, k=5, mode=mode)
            assert each.cited == tuple(hit.reference for hit in searched.citations)
            assert each.cited
    second = (await birds.notes.search("birds that sing", k=2)).citations[1]
    low = {"id": "low", "question": "birds that sing", "expect": "citation", "k": 1}
    low["expect_path_contains"] = second.path
    found = await comparer(birds, ollama).compare(dataset(birds, low), [("bundled", None)])
    assert [(each.right, each.rank) for each in found.rows[0].answers] == [(False, 2)]


async def test_by_default_all_that_have_nearly_all_vectors_are_compared(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    await comparer(birds, ollama).compare(dataset(birds), [OTHER])
    birds.write("new.md", "A new note about wrens.\n")
    await birds.index(embed=True)
    listed = {row.name: (row.embedded, row.pending) for row in await birds.notes.embedders.listing()}
    assert listed == {BUNDLED_ID: (4, 0), OTHER_ID: (3, 1)}, "what was never queued for it waits too"
    found = await comparer(birds, ollama).compare(dataset(birds))
    assert [row.name for row in found.measured] == [BUNDLED_ID, KEYWORDS]
    (left_out,) = [row for row in found.rows if row.left_out]
    assert (left_out.name, left_out.embedded, left_out.passages) == (OTHER_ID, 3, 4)
    assert "`--model ollama/all-minilm` has the others made" in left_out.left_out


async def test_what_nearly_all_lack_is_made_without_being_asked_for(
    birds: Vault, ollama: ScriptedOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    await comparer(birds, ollama).compare(dataset(birds), [OTHER])
    birds.write("new.md", "A new note about wrens.\n")
    await birds.index(embed=True)
    monkeypatch.setattr(comparing, "NEARLY", 0.75)
    found = await comparer(birds, ollama).compare(dataset(birds))
    assert [(row.name, row.embedded) for row in found.rows[:2]] == [(BUNDLED_ID, 4), (OTHER_ID, 4)]


async def test_a_model_that_is_named_is_measured_as_far_as_it_is_when_nothing_shall_be_made(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    comparing_now = comparer(birds, ollama)
    unknown = await comparing_now.compare(dataset(birds), [OTHER], embed=False)
    assert unknown.rows[0].left_out.startswith("The index has no vectors of it.")
    assert await birds.value("SELECT count(*) FROM model") == 1
    await comparing_now.compare(dataset(birds), [OTHER])
    birds.write("new.md", "A new note about wrens.\n")
    await birds.index(embed=True)
    row = (await comparing_now.compare(dataset(birds), [OTHER], embed=False)).rows[0]
    assert row.score is not None
    assert row.caution == "It was measured with the vectors of 3 of 4 passages."


async def test_a_server_that_is_gone_is_a_row_and_the_others_are_measured(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    await comparer(birds, ollama).compare(dataset(birds), [OTHER])
    await ollama.stop()
    for named in ([], [OTHER, ("bundled", None)]):
        found = await comparer(birds, ollama).compare(dataset(birds), named)
        assert {row.name for row in found.measured} == {BUNDLED_ID, KEYWORDS}
        (gone,) = [row for row in found.rows if row.left_out]
        assert f"Ollama does not answer at {ollama.url}" in gone.left_out
        assert (gone.model, gone.embedded, gone.passages) == ("all-minilm", 3, 3)


async def test_a_model_that_falls_in_the_midst_is_not_measured_by_words_instead(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    await comparer(birds, ollama).compare(dataset(birds), [OTHER])
    asked: list[Asked] = []

    def falls(request: Asked) -> Answer:
        asked.append(request)
        return Answer({"error": "out of memory"}, 500)

    def tell(step: CompareStep) -> None:
        if not step.embedding and step.name == OTHER_ID and step.done == 1:
            ollama.answers["/api/embed"] = falls
        elif not step.embedding and step.done == len(QUESTIONS):
            ollama.answers.clear()  # else meaning alone would tell of it

    found = await comparer(birds, ollama).compare(dataset(birds), [OTHER], tell=tell)
    assert asked
    assert "out of memory" in found.rows[0].left_out
    assert found.rows[0].score is None


async def test_a_version_that_was_pulled_over_is_left_out_and_the_new_one_can_be_named(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    await comparer(birds, ollama).compare(dataset(birds), [OTHER])
    ollama.digest = "f" * 64
    found = await comparer(birds, ollama).compare(dataset(birds))
    assert found.rows[1].name == OTHER_ID
    assert "not this version any more, but ollama:all-minilm@ffff" in found.rows[1].left_out
    found = await comparer(birds, ollama).compare(dataset(birds), [OTHER])
    assert (found.rows[0].name, found.rows[0].embedded) == ("ollama:all-minilm@ffffffffffff", 3)


async def test_one_model_is_open_at_a_time_and_none_in_the_end(
    birds: Vault, ollama: ScriptedOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: set[int] = set()
    most = 0
    real = comparing.embedder_of

    def watched(*arguments: Any) -> Any:
        nonlocal most
        embedder = real(*arguments)
        close = embedder.close

        async def closed() -> None:
            opened.discard(id(embedder))
            await close()

        monkeypatch.setattr(embedder, "close", closed)
        opened.add(id(embedder))
        most = max(most, len(opened))
        return embedder

    monkeypatch.setattr(comparing, "embedder_of", watched)
    named = [("bundled", None), OTHER, ("ollama", "nonesuch")]
    found = await comparer(birds, ollama).compare(dataset(birds), named)
    assert "has no model" in found.rows[2].left_out
    assert (most, opened) == (1, set())
    ollama.held = holding("owls")
    task = asyncio.create_task(comparer(birds, ollama).compare(dataset(birds), [OTHER]))
    await ollama.waiting.wait()
    assert opened
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert opened == set()


async def test_what_was_made_before_it_was_cancelled_is_not_made_again(
    birds: Vault, ollama: ScriptedOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "BATCH", 1)
    ollama.held = holding("Owls")  # the oldest note, so the last
    task = asyncio.create_task(comparer(birds, ollama).compare(dataset(birds), [OTHER]))
    await ollama.waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    made = "SELECT count(*) FROM embedding JOIN model ON model.id = embedding.model WHERE vector IS NOT NULL AND provider = 'ollama'"
    assert await birds.value(made) == 2
    ollama.held = lambda asked: False
    found = await comparer(birds, ollama).compare(dataset(birds), [OTHER])
    assert found.rows[0].embedded == 3
    requests = [text for texts in ollama.embedded for text in texts]
    assert [requests.count(text) for text in ("Larks sing.", "Swifts fly.")] == [1, 1]


async def test_a_console_that_makes_the_same_vectors_shares_the_work(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    ollama.held = holding("Larks")
    async with process(birds, BundledEmbedder(), ollama_url=ollama.url) as console:
        await console.embedders.choose(*OTHER)
        await ollama.waiting.wait()  # the console has all three in hand
        task = asyncio.create_task(comparer(birds, ollama).compare(dataset(birds), [OTHER]))
        steps = len(ollama.asked)
        await eventually(lambda: len(ollama.asked) > steps)
        assert not task.done()
        ollama.gate.set()
        found = await task
        assert found.rows[0].embedded == 3
        await eventually(lambda: answers(console) == OTHER_ID)
    requests = [text for texts in ollama.embedded for text in texts]
    assert requests.count("Larks sing.") == 1


async def test_words_that_wait_are_indexed_first(birds: Vault, ollama: ScriptedOllama) -> None:
    birds.write("new.md", "A new note about wrens.\n")
    await birds.notes.index_all()
    asked = {"id": "wrens", "question": "wrens", "expect": "citation", "expect_path_contains": "new"}
    found = await comparer(birds, ollama).compare(dataset(birds, asked), [OTHER])
    assert [(row.name, row.right) for row in found.measured] == [
        (OTHER_ID, {"wrens"}),
        (KEYWORDS, {"wrens"}),
    ]
    assert (found.rows[0].embedded, found.rows[0].passages) == (4, 4)


async def test_a_passage_the_model_cannot_read_is_told(birds: Vault, ollama: ScriptedOllama) -> None:
    def stumbles(asked: Asked) -> Answer:
        if any("Larks" in text for text in asked.body["input"]):
            return Answer({"error": "cannot read larks"}, 400)
        del ollama.answers["/api/embed"]
        answer = ollama._answer(asked)
        ollama.answers["/api/embed"] = stumbles
        return answer

    ollama.answers["/api/embed"] = stumbles
    row = (await comparer(birds, ollama).compare(dataset(birds), [OTHER])).rows[0]
    assert row.score is not None
    assert row.caution == "It was measured with the vectors of 2 of 3 passages."


async def test_a_distance_of_the_settings_holds_for_every_model(birds: Vault, ollama: ScriptedOllama) -> None:
    found = await comparer(birds, ollama, retrieval_max_distance=0.0).compare(dataset(birds))
    assert found.distance == 0
    assert [each.cited for each in found.rows[0].meaning_answers] == [(), (), ()]


async def test_a_question_about_a_note_that_is_not_there_is_told(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    gone = {"id": "gone", "question": "owls", "expect": "citation", "expect_path_contains": "herons"}
    found = await comparer(birds, ollama).compare(dataset(birds, *QUESTIONS, gone))
    assert found.absent == ("gone",)
    assert found.unanswered() == ("gone",)


async def test_how_far_it_is_is_told(birds: Vault, ollama: ScriptedOllama) -> None:
    steps: list[CompareStep] = []
    await comparer(birds, ollama).compare(dataset(birds), [OTHER], tell=steps.append)
    making = [step for step in steps if step.embedding]
    assert (making[0].done, making[-1].done, making[-1].total) == (0, 3, 3)
    asking = [(step.name, step.done, step.total) for step in steps if not step.embedding]
    assert asking == [(OTHER_ID, n, 6) for n in range(1, 7)] + [(KEYWORDS, n, 3) for n in range(1, 4)]


async def test_text_that_is_hostile_to_a_database_or_a_model_is_only_asked(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    texts = (
        "\0",
        "'; DROP TABLE passage; --",
        "%s %(x)s {0}",
        '"unclosed',
        "\x1b[2J\u202e",
        "?" * 5_000,
        "🦉",
    )
    asked = [
        {"id": f"{number}\0\x1b", "question": text, "expect": "citation", "expect_path_contains": "\0'%"}
        for number, text in enumerate(texts)
        if text.strip()
    ]
    found = await comparer(birds, ollama).compare(dataset(birds, *asked), [("bundled", None), OTHER])
    assert len(found.measured) == 3
    assert len(found.unanswered()) == len(asked)


async def test_what_cannot_be_compared_is_an_error_before_anything_is_made(
    birds: Vault, ollama: ScriptedOllama
) -> None:
    now = comparer(birds, ollama)
    with pytest.raises(DatasetError, match="cannot be read"):
        await now.compare(birds.root / "nowhere.json", [OTHER])
    for named in (("cloud", None), ("bundled", "bert")):
        with pytest.raises(SettingsError):
            await now.compare(dataset(birds), [OTHER, named])
    assert ollama.asked == []
    await birds.rows("DELETE FROM embedding")
    with pytest.raises(ModelError, match="No model has the vectors of nearly all 3 passages"):
        await now.compare(dataset(birds))


async def test_an_index_without_notes_is_an_error(vault: Vault, ollama: ScriptedOllama) -> None:
    with pytest.raises(FolderError, match="holds no text"):
        await comparer(vault, ollama).compare(dataset(vault))


async def test_knowmans_own_questions_are_answered_on_its_notes(vault: Vault, ollama: ScriptedOllama) -> None:
    if not KNOWMAN.is_dir():
        pytest.skip("the shared data has no knowman here")
    for note in (KNOWMAN / "corpus").glob("*.md"):
        vault.write(note.name, note.read_bytes())
    await vault.index(embed=True)
    found = await comparer(vault, ollama).compare(KNOWMAN / "dataset.json")
    bundled, keywords = found.rows
    assert bundled.score is not None
    assert (bundled.score.right, bundled.score.recall) == (25, 1.0)
    assert keywords.score is not None
    assert keywords.score.right < 25, "words alone find something where there is nothing"
    assert found.absent == ()

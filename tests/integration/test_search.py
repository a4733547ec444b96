"""Search over real notes and the real model: words, phrases, meaning, and honest emptiness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from engine.errors import ModelError, QueryError
from engine.models.embedding.bundled import BundledEmbedder
from engine.notes import lists
from engine.notes.model import Mode
from engine.notes.search import COMMON_PHRASE, UNKNOWN_PHRASE

if TYPE_CHECKING:
    from engine.notes.model import SearchResult
    from tests.integration.vault import AttentiveEmbedder, Vault

BIRDS = {
    "owls.md": "# Owls\n\nOwls hunt mice in the dark of the night.\n",
    "swifts.md": "# Swifts\n\nSwifts sleep in the air while they fly.\n",
    "bread.md": "# Bread\n\nKnead the dough for ten minutes, then let it rise.\n",
    "code.md": "# Code\n\nThe real-time clock calls my_var and camelCase in C++ since 1.0.21.\n",
    "german.md": "# Deutsch\n\nDie Donaudampfschifffahrt fährt über den Fluss.\n",
    "east.md": "# 東\n\n猫が好きです。我喜欢北京的天气。한국어 문장입니다。แมวกินปลา\n",
}


@pytest.fixture
async def birds(vault: Vault) -> Vault:
    for path, text in BIRDS.items():
        vault.write(path, text)
    await vault.index(embed=True)
    return vault


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("real-time", "code.md"),
        ("my_var", "code.md"),
        ("1.0.21", "code.md"),
        ("camelCase", "code.md"),
        ("camel", "code.md"),
        ("C++", "code.md"),
        ("donaudampfschifffahrt", "german.md"),
        ("FÄHRT", "german.md"),
        ("猫", "east.md"),
        ("北京", "east.md"),
        ("문장", "east.md"),
        ("แมว", "east.md"),
    ],
)
async def test_words_of_all_kinds_are_found(birds: Vault, query: str, path: str) -> None:
    assert (await birds.found(query))[:1] == [path]


async def test_a_search_says_how_many_passages_have_no_vector_yet(birds: Vault) -> None:
    assert (await birds.notes.search("baking a loaf")).notes == ()
    birds.write("new.md", "# Rye\n\nA sour rye loaf.\n")
    birds.write("newer.md", "# Oats\n\nOat cakes.\n")
    await birds.index()
    birds.notes._searcher._waiting._until = 0.0  # its count may be a moment old
    assert (await birds.notes.search("baking a loaf")).notes == (
        "Vectors are still being made: 2 passages wait for vectors, found by words alone until then.",
    )
    assert (await birds.notes.search("baking a loaf", mode=Mode.VECTOR)).notes == (
        "Vectors are still being made: 2 passages wait for vectors, not found by meaning until then.",
    )
    assert (await birds.notes.search("baking a loaf", mode=Mode.KEYWORD)).notes == ()
    (birds.root / "newer.md").unlink()
    await birds.index()  # what no file holds waits for nothing
    birds.notes._searcher._waiting._until = 0.0
    assert "1 passage waits for its vector" in (await birds.notes.search("baking a loaf")).notes[0]


@pytest.mark.parametrize(
    ("query", "mode", "notes"),
    [
        ("我喜欢", Mode.HYBRID, ("The model does not read this query's language: searched by words alone.",)),
        (
            "แมวกินปลา",
            Mode.VECTOR,
            ("The model hardly reads this query's language: its distances mean little.",),
        ),
        ("我喜欢", Mode.KEYWORD, ()),
        ("1.0.21", Mode.HYBRID, ()),
        ("owls at night", Mode.HYBRID, ()),
    ],
)
async def test_a_search_says_that_the_model_does_not_read_the_language(
    birds: Vault, query: str, mode: Mode, notes: tuple[str, ...]
) -> None:
    assert (await birds.notes.search(query, mode=mode)).notes == notes


async def test_meaning_is_found_without_a_common_word(birds: Vault) -> None:
    (first, *_) = (await birds.notes.search("baking a loaf", mode=Mode.VECTOR)).citations
    assert first.path == "bread.md"
    assert await birds.found("baking a loaf") == []
    (first, *_) = (await birds.notes.search("baking a loaf")).citations
    assert first.path == "bread.md"


async def test_a_phrase_stands_as_it_is_written_in_every_mode(birds: Vault) -> None:
    for mode in Mode:
        assert await birds.found('"hunt mice"', mode=mode, max_distance=2) == ["owls.md"]
        assert await birds.found('"mice hunt"', mode=mode, max_distance=2) == []
        assert await birds.found('"hunt mice" swifts', mode=mode, max_distance=2) == ["owls.md"]


async def test_a_question_that_quotes_what_stands_nowhere_is_searched_by_its_words(birds: Vault) -> None:
    for mode in Mode:
        found = await birds.notes.search('what do owls hunt as "tiny mice"', mode=mode, max_distance=2)
        assert found.citations[0].path == "owls.md"
        assert UNKNOWN_PHRASE in found.notes
        alone = await birds.notes.search('"tiny mice"', mode=mode, max_distance=2)
        assert (alone.citations, alone.notes) == ((), ())
        known = await birds.notes.search('what hunts "mice"', mode=mode, max_distance=2)
        assert UNKNOWN_PHRASE not in known.notes


async def test_an_arabic_name_is_found_with_and_without_its_article(vault: Vault) -> None:
    await vault.save("a.md", "سافر دكتور هو وحيدا.\n")
    await vault.save("b.md", "قابلت والدكتور هو.\n")
    await vault.save("c.md", "الدكتورة هوية.\n")
    assert sorted(await vault.found('"الدكتور هو"')) == ["a.md", "b.md"]
    assert sorted(await vault.found('"دكتور هو"')) == ["a.md", "b.md"]
    assert await vault.found("سافرت") == ["a.md"]


async def test_a_phrase_of_common_words_is_looked_for_where_the_query_fits_best_and_it_is_said(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        vault.write(f"{number:02}.md", f"To be read, and be told to go {number}.\n")
    vault.write("hamlet.md", "To be or not to be, says the prince of Denmark.\n")
    await vault.index()
    everything = await vault.notes.search('"to be" prince', mode=Mode.KEYWORD, k=100)
    assert len(everything.citations) == 41
    assert everything.notes == ()
    monkeypatch.setattr(lists, "PHRASE_TEXTS", 5)
    for mode in (Mode.KEYWORD, Mode.HYBRID):
        few = await vault.notes.search('"to be" prince', mode=mode, k=100)
        assert few.citations[0].path == "hamlet.md"
        assert len(few.citations) == 5
        assert COMMON_PHRASE in few.notes
    rare = await vault.notes.search('"prince of denmark"', mode=Mode.KEYWORD)
    assert (len(rare.citations), rare.notes) == (1, ())


async def test_one_letter_stands_for_no_word(vault: Vault) -> None:
    await vault.save("a.md", "The swift is back.\n")
    assert await vault.found("s", prefix=True) == []
    assert await vault.found("sw", prefix=True) == ["a.md"]
    (hit,) = (await vault.notes.search("back s", prefix=True, mode=Mode.KEYWORD)).citations
    assert {hit.text[start:end] for start, end in hit.matches} == {"back"}


async def test_an_unfinished_word_is_completed_only_when_asked(birds: Vault) -> None:
    assert await birds.found("swif") == []
    assert await birds.found("swif", prefix=True) == ["swifts.md"]
    assert set(await birds.found("mice swif", prefix=True)) == {"swifts.md", "owls.md"}
    (hit,) = (await birds.notes.search("swif", prefix=True, mode=Mode.KEYWORD)).citations
    assert {hit.text[start:end] for start, end in hit.matches} == {"Swifts"}


@pytest.mark.parametrize("query", ["", "   ", "\0", "***", '""', '"', "zebra quagga"])
@pytest.mark.parametrize("mode", [Mode.KEYWORD, Mode.HYBRID])
async def test_nothing_found_is_an_answer(birds: Vault, query: str, mode: Mode) -> None:
    result = await birds.notes.search(query, mode=mode, max_distance=0.1)
    assert result.citations == ()


async def test_the_distance_bounds_what_is_evidence(birds: Vault) -> None:
    whole = await birds.notes.search("owls at night", mode=Mode.VECTOR, max_distance=2, k=10)
    assert whole.citations[0].path == "owls.md"
    distances = [hit.distance for hit in whole.citations if hit.distance is not None]
    assert distances == sorted(distances)
    near = await birds.notes.search("owls at night", mode=Mode.VECTOR, max_distance=distances[1], k=10)
    assert [hit.path for hit in near.citations] == [hit.path for hit in whole.citations[:2]]
    assert (await birds.notes.search("owls at night", mode=Mode.VECTOR, max_distance=0)).citations == ()
    assert all(hit.distance is not None for hit in (await birds.notes.search("owls", k=10)).citations)


async def test_distances_are_the_true_ones(birds: Vault, embedder: AttentiveEmbedder) -> None:
    result = await birds.notes.search("owls at night", max_distance=2, k=10)
    query = await embedder.query("owls at night")
    for hit in result.citations:
        (vector,) = await embedder.passages([f"{' > '.join(hit.heading)}\n{hit.text}"])
        assert hit.distance == pytest.approx(1 - float(np.dot(query, vector)), abs=0.002)


async def test_explain_tells_the_place_in_each_list(birds: Vault) -> None:
    result = await birds.notes.search("owls hunt the dough", max_distance=2, k=10)
    for kind in ("keyword", "vector"):
        ranks = [
            (getattr(hit.explanation, f"{kind}_rank"), getattr(hit.explanation, f"{kind}_score"))
            for hit in result.citations
            if getattr(hit.explanation, f"{kind}_rank") is not None
        ]
        assert (min(ranks)[0], len(dict(ranks))) == (1, len(ranks)), "each place once, from the first on"
        scores = [score for _, score in sorted(ranks)]
        assert scores == sorted(scores, reverse=kind == "keyword")
    fused = [hit.score for hit in result.citations]
    assert fused == sorted(fused, reverse=True)
    by_words = (await birds.notes.search("owls", mode=Mode.KEYWORD)).citations[0].explanation
    assert by_words is not None
    assert (by_words.keyword_rank, by_words.vector_rank, by_words.vector_score) == (1, None, None)


async def test_modes_draw_on_their_lists_alone(birds: Vault) -> None:
    by_words = await birds.notes.search("owls", mode=Mode.KEYWORD, k=10)
    assert [(hit.path, hit.distance) for hit in by_words.citations] == [("owls.md", None)]
    by_meaning = await birds.notes.search("owls", mode=Mode.VECTOR, k=10, max_distance=2)
    assert all(hit.explanation and hit.explanation.keyword_rank is None for hit in by_meaning.citations)


async def test_while_vectors_are_being_made_words_and_finished_vectors_answer(vault: Vault) -> None:
    for path in ("owls.md", "bread.md"):
        await vault.save(path, BIRDS[path], embed=path == "bread.md")
    await vault.save("swifts.md", BIRDS["swifts.md"])
    result = await vault.notes.search("swifts and dough", k=10, max_distance=2)
    assert {hit.path: hit.distance is None for hit in result.citations} == {
        "swifts.md": True,
        "bread.md": False,
        "owls.md": False,
    }


async def test_what_no_note_holds_any_more_is_found_in_no_mode(birds: Vault) -> None:
    await birds.save("owls.md", "# Bread\n\nAnother loaf.\n", embed=True)
    for mode in Mode:
        result = await birds.notes.search("owls hunt mice", mode=mode, k=20, max_distance=2)
        assert "Owls" not in "".join(hit.text for hit in result.citations)


async def test_a_model_that_does_not_answer_leaves_the_words(
    birds: Vault, embedder: AttentiveEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def mute(_: str) -> None:
        raise ModelError("The model is missing.")

    monkeypatch.setattr(embedder, "query", mute)
    result: SearchResult = await birds.notes.search("owls")
    assert [hit.path for hit in result.citations] == ["owls.md"]
    assert result.notes == ("Searched by keyword alone: The model is missing.",)
    with pytest.raises(ModelError):
        await birds.notes.search("owls", mode=Mode.VECTOR)


async def test_k_is_kept_and_bounded(vault: Vault) -> None:
    vault.write("many.md", "\n\n".join(f"# Part {number}\n\ncommon text {number}" for number in range(150)))
    await vault.index()
    assert len((await vault.notes.search("common")).citations) == 3
    for k in (1, 7, 150):
        assert len((await vault.notes.search("common", k=k, mode=Mode.KEYWORD)).citations) == k
    for k in (0, -1, 201):
        with pytest.raises(QueryError, match=f"k is {k}"):
            await vault.notes.search("common", k=k)
    for distance in (-0.1, 2.1, float("nan")):
        with pytest.raises(QueryError, match="distance"):
            await vault.notes.search("common", max_distance=distance)


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("'; DROP TABLE job; --", id="SQL"),
        pytest.param("%_\\", id="patterns"),
        pytest.param("[/b] [red]", id="markup"),
        pytest.param("a" * 50_000, id="a long word"),
        pytest.param("wort " * 5_000, id="a pasted page"),
        pytest.param("\udcff", id="a lone surrogate"),
        pytest.param("\x1b[2J", id="an escape"),
        pytest.param("((((", id="brackets"),
        pytest.param('"' * 99, id="quotes"),
    ],
)
async def test_no_query_is_an_error(birds: Vault, query: str) -> None:
    for mode in Mode:
        await birds.notes.search(query, mode=mode, prefix=True)
    assert await birds.found("owls") == ["owls.md"]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("query", ["%", "_", "((((", '""""""', "---", " ", "\udcff", "\x1b[["])
async def test_signs_without_a_word_ask_for_nothing(birds: Vault, query: str, mode: Mode) -> None:
    result = await birds.notes.search(query, mode=mode, max_distance=2.0, prefix=True)
    assert (result.citations, result.notes) == ((), ())


async def test_an_empty_index_answers(vault: Vault) -> None:
    for mode in Mode:
        assert (await vault.notes.search("owls", mode=mode, prefix=True)).citations == ()


async def test_a_passage_in_another_script_may_lie_further_off(
    birds: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    birds.write("chinese.md", "猫头鹰在夜里捕猎白天在树洞里睡觉 (owls hunt)\n")
    await birds.index(embed=True)

    async def found(distance: float | None = None) -> dict[str, float | None]:
        result = await birds.notes.search("when do owls hunt", mode=Mode.VECTOR, k=20, max_distance=distance)
        return {hit.path: hit.distance for hit in result.citations}

    distances = await found(2)
    limit = (distances["chinese.md"] or 0.0) - 0.01
    latin = {path for path, distance in distances.items() if distance and distance <= limit}
    beyond = set(distances) - latin - {"chinese.md"}
    assert beyond, "something in the query's own script lies as far off"
    monkeypatch.setattr(BundledEmbedder, "default_distance", limit)
    monkeypatch.setattr(BundledEmbedder, "distance_across", limit)
    assert set(await found()) == latin
    monkeypatch.setattr(BundledEmbedder, "distance_across", 1.5)
    assert set(await found()) == latin | {"chinese.md"}
    assert set(await found(limit)) == latin, "what the user sets holds for all"

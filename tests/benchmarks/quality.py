"""The questions of the quality benchmarks, the notes they are asked of, and how answers are scored.

Nothing here knows what answers them: a `System` is given a folder of notes and asked.

Scores, as their authors define them: for chunking_evaluation the share of a question's reference
characters that the first five results cover, averaged over the questions (and, for comparison, the
share of all reference characters); all five texts are in one index, so a passage of another text
takes a place and earns nothing. For XQuAD the share of the questions whose paragraph is among the
first ten, each language an index of its own. For knowman the count of right answers out of 25.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from figures import data

from engine.notes.model import Citation, Mode

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = ("en", "de", "es", "zh", "ar", "hi", "th")
CHUNKS_SHOWN, PARAGRAPHS_SHOWN, CITATIONS_SHOWN = 5, 10, 3

Ask = Callable[[str, int, Mode], Awaitable[Sequence[Citation]]]
"""What is tested: a question, how many results, by which lists → citations, best first."""


@dataclass(frozen=True)
class Coverage:
    """Share of the reference characters that were covered: mean over questions, and over characters."""

    by_question: float
    by_character: float


@dataclass(frozen=True)
class SpanQuestion:
    """A question with the (start, end) character offsets of what answers it, in one text."""

    question: str
    text: str
    spans: tuple[tuple[int, int], ...]


def chunking_texts() -> Path:
    """The folder with the five texts."""
    return data("chunking_evaluation/corpora")


def chunking_questions() -> list[SpanQuestion]:
    """The 472 questions."""
    with data("chunking_evaluation/questions.csv").open(encoding="utf-8", newline="") as file:
        return [
            SpanQuestion(
                row["question"],
                f"{row['corpus_id']}.md",
                tuple((span["start_index"], span["end_index"]) for span in json.loads(row["references"])),
            )
            for row in csv.DictReader(file)
        ]


class Offsets:
    """Finds where a citation stands in the text it cites, in characters."""

    def __init__(self, folder: Path) -> None:
        self._texts = {path.name: path.read_bytes().decode() for path in folder.glob("*.md")}

    def of(self, citation: Citation) -> tuple[int, int]:
        """The (start, end) of the cited passage: its text within its lines."""
        text = self._texts[citation.path]
        start = 0
        for _ in range(citation.line_start - 1):
            start = text.index("\n", start) + 1
        found = text.index(citation.text, start)
        return found, found + len(citation.text)


async def coverage(ask: Ask, mode: Mode) -> Coverage:
    """How much of the references the first five results cover."""
    offsets = Offsets(chunking_texts())
    shares, covered, total = [], 0, 0
    for item in chunking_questions():
        citations = await ask(item.question, CHUNKS_SHOWN, mode)
        ranges = [offsets.of(each) for each in citations if each.path == item.text]
        wanted = {place for start, end in item.spans for place in range(start, end)}
        found = {place for start, end in ranges for place in range(start, end)} & wanted
        shares.append(len(found) / len(wanted))
        covered, total = covered + len(found), total + len(wanted)
    return Coverage(sum(shares) / len(shares), covered / total)


@dataclass(frozen=True)
class Paragraphs:
    """XQuAD in one language: paragraphs, and questions with the number of the paragraph of each."""

    paragraphs: list[str]
    questions: list[tuple[str, int]]

    def write(self, folder: Path) -> Path:
        """Each paragraph as a note of its own."""
        folder.mkdir(parents=True)
        for number, paragraph in enumerate(self.paragraphs):
            (folder / f"{number}.md").write_text(paragraph + "\n", encoding="utf-8")
        return folder


def xquad(language: str) -> Paragraphs:
    """The 240 paragraphs and 1,190 questions of a language."""
    with gzip.open(data(f"xquad/xquad.{language}.json.gz"), "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    entries = [paragraph for article in articles for paragraph in article["paragraphs"]]
    return Paragraphs(
        [entry["context"] for entry in entries],
        [(asked["question"], number) for number, entry in enumerate(entries) for asked in entry["qas"]],
    )


async def paragraph_recall(ask: Ask, mode: Mode, questions: Sequence[tuple[str, int]]) -> float:
    """The share of the questions whose paragraph is cited by the first ten results."""
    hits = 0
    for question, number in questions:
        citations = await ask(question, PARAGRAPHS_SHOWN, mode)
        hits += any(each.path == f"{number}.md" for each in citations)
    return hits / len(questions)


def knowman_notes() -> Path:
    """knowman's 11 notes."""
    return data("knowman/corpus")


async def knowman_misses(ask: Ask) -> list[str]:
    """The ids of the questions of knowman that are answered wrongly, with what was cited instead."""
    misses = []
    for item in json.loads(data("knowman/dataset.json").read_text(encoding="utf-8")):
        paths = [each.path for each in await ask(item["question"], CITATIONS_SHOWN, Mode.HYBRID)]
        expected = item["expect_path_contains"]
        right = not paths if item["expect"] == "negative" else any(expected in path for path in paths)
        if not right:
            misses.append(f"{item['id']} → {', '.join(paths) or 'nothing'}")
    return misses

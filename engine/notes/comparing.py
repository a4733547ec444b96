"""Models compared by labelled questions, each asked through the very search that the product uses.

What answers searches is not touched: no choice is written, and a model that gets its vectors here is not
marked as one that may answer. One model is open at a time, since two may not fit into the memory.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import FolderError, ModelError, SettingsError
from engine.models.embedding.base import embedder_of
from engine.models.embedding.proven import ProvenEmbedder
from engine.notes import labelled, models
from engine.notes.backlog import Backlog
from engine.notes.compared import KEYWORDS, Compared, CompareStep, Comparison
from engine.notes.embedders import Served
from engine.notes.model import Mode
from engine.notes.reporting import reporting
from engine.notes.scoring import DEPTH, judged, score
from engine.notes.search import Asked, Searcher
from engine.notes.tally import index_counts
from engine.text.amounts import count

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from engine.database import Database
    from engine.notes import Notes
    from engine.notes.labelled import Question
    from engine.notes.model import FolderId, ModelRow
    from engine.notes.scoring import Judged
    from engine.settings import Settings

NEARLY = 0.9
"""Share of the passages whose vectors a model must have to be compared without being named: the rest of
them is made in a moment. A model that was tried once and left would take hours that nobody asked for."""

BESIDE = 0.25
"""Seconds until it is looked again at passages that another process has in hand."""


@dataclass
class _Candidate:
    """A model that may be compared. `name` is empty until it is known; `fault` is why it cannot be."""

    provider: str
    model: str
    name: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class _Sole:
    """One model that answers, whichever is in use; None: none does."""

    serving: Served | None

    def answering(self) -> Sequence[Served]:
        return [self.serving] if self.serving else []

    def absence(self) -> ModelError:
        return ModelError("No model is asked.")


class Comparer:
    """Compares models. `foreign` gives the folders whose words are indexed on another machine."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        notes: Notes,
        foreign: Callable[[], Sequence[FolderId]] = tuple,
    ) -> None:
        self._database = database
        self._settings = settings
        self._notes = notes
        self._foreign = foreign
        self._tell: Callable[[CompareStep], None] = _unheard

    async def compare(
        self,
        dataset: Path,
        named: Sequence[tuple[str, str | None]] = (),
        *,
        embed: bool = True,
        tell: Callable[[CompareStep], None] | None = None,
    ) -> Comparison:
        """Ask the questions of `dataset` of each model, and of keywords alone.

        `named` are the models as (provider, model; None: its default); without any, all that have nearly all
        vectors. With `embed` the vectors that are missing are made first. `tell` hears how far it is.

        Raises:
            DatasetError: the file is not as it must be.
            SettingsError: a provider or model that is named does not exist.
            ModelError: none is named, and none has nearly all its vectors.
            FolderError: nothing is indexed.
        """
        self._tell = tell or _unheard
        questions = await asyncio.to_thread(labelled.read, dataset)
        async with self._database.connection() as connection:
            passages = (await index_counts(connection)).passages
            cursor = await connection.execute("SELECT path FROM file")
            paths = [row[0] for row in await cursor.fetchall()]
        if not passages:
            raise FolderError("The index holds no text.", remedy="`noctuary index FOLDER` reads a folder.")
        candidates = await self._named(named) if named else await self._kept(passages)
        if embed:
            for each in candidates:
                await self._completed(each)
        rows = [await self._row(each, questions) for each in candidates]
        return Comparison(
            questions,
            tuple(self._k(each) for each in questions),
            (*rows, await self._keywords(questions)),
            await asyncio.to_thread(labelled.absent, questions, paths),
            self._settings.retrieval_max_distance,
        )

    # Which

    async def _named(self, named: Sequence[tuple[str, str | None]]) -> list[_Candidate]:
        found: dict[tuple[str, str], _Candidate] = {}
        for provider, model in named:
            embedder = embedder_of(provider, model, self._settings)
            await embedder.close()  # it costs nothing until it is used, and is the one to know its name
            key = (embedder.provider, embedder.model)
            found.setdefault(key, _Candidate(*key))
        return list(found.values())

    async def _kept(self, passages: int) -> list[_Candidate]:
        candidates = []
        for row in await self._notes.embedders.listing():
            fault = ""
            if row.embedded < NEARLY * passages:
                named = f"--model {row.provider}/{row.model}"
                fault = f"It has too few vectors; `{named}` has the others made."
            candidates.append(_Candidate(row.provider, row.model, row.name, fault))
        if all(each.fault for each in candidates):
            raise ModelError(
                f"No model has the vectors of nearly all {count(passages, 'passage')}.",
                remedy="`noctuary index` makes those of the one in use, `--model PROVIDER/MODEL` others.",
            )
        return candidates

    @asynccontextmanager
    async def _opened(self, each: _Candidate) -> AsyncIterator[ProvenEmbedder]:
        """The model, ready to be asked.

        Raises:
            ModelError: it cannot be loaded or reached, or is another version than the one meant.
            SettingsError: this program has no such provider any more.
        """
        async with self._database.connection() as connection:
            distances = await models.distances(connection)
        embedder = embedder_of(each.provider, each.model, self._settings, distances)
        try:
            await embedder.ready()
            each.name = each.name or embedder.model_id
            if embedder.model_id != each.name:
                raise ModelError(f"The model is not this version any more, but {embedder.model_id}.")
            yield ProvenEmbedder(embedder, lambda: None)
        finally:
            await embedder.close()

    # The vectors that are missing

    async def _completed(self, each: _Candidate) -> None:
        if each.fault:
            return
        try:
            async with self._opened(each) as embedder:
                backlog = Backlog(self._database, embedder, self._foreign, to_answer=False)
                await backlog.register()
                await self._make(backlog, each.name)
        except (ModelError, SettingsError) as error:
            each.fault = str(error)

    async def _make(self, backlog: Backlog, name: str) -> None:
        """Make every vector that is missing, together with any other process that makes them."""

        async def report() -> None:
            await self._told(backlog, name, exact=False)

        if not await self._missing(backlog):
            return
        while await self._told(backlog, name, exact=True):
            await self._notes.work_until_idle(embed=False)  # vectors wait for words
            await reporting(backlog.run_until_idle(), report)
            await asyncio.sleep(BESIDE)
            await backlog.fill()

    async def _missing(self, backlog: Backlog) -> int:
        await backlog.fill()
        async with self._database.connection() as connection:
            return (await backlog.progress(connection)).pending

    async def _told(self, backlog: Backlog, name: str, *, exact: bool) -> int:
        """Tell how far the vectors are. Returns how many are missing."""
        async with self._database.connection() as connection:
            now = await backlog.progress(connection, exact=exact)
        done = now.embedded + now.failed
        self._tell(
            CompareStep(name, embedding=True, done=done, total=now.total, seconds_left=now.seconds_left)
        )
        return now.pending

    # The questions

    async def _row(self, each: _Candidate, questions: Sequence[Question]) -> Compared:
        listed = await self._listed(each)
        if each.fault:
            return _unmeasured(each, listed, each.fault)
        try:
            async with self._opened(each) as embedder:
                listed = await self._listed(each)
                searcher = Searcher(self._database, _Sole(await self._served(embedder, listed)), strict=True)
                hybrid = await self._asked(searcher, Mode.HYBRID, each.name, questions)
                meaning = await self._asked(searcher, Mode.VECTOR, each.name, questions)
        except (ModelError, SettingsError) as error:
            return _unmeasured(each, listed, str(error))
        return _measured(each, listed, hybrid, meaning)

    async def _keywords(self, questions: Sequence[Question]) -> Compared:
        searcher = Searcher(self._database, _Sole(None))
        answers = await self._asked(searcher, Mode.KEYWORD, KEYWORDS, questions)
        return Compared(KEYWORDS, score=score(answers), answers=answers)

    async def _listed(self, each: _Candidate) -> ModelRow | None:
        """What the index has of it: of its latest version, while it cannot be asked for its own."""
        rows = await self._notes.embedders.listing()
        if each.name:
            return next((row for row in rows if row.name == each.name), None)
        of_it = [row for row in rows if (row.provider, row.model) == (each.provider, each.model)]
        return of_it[-1] if of_it else None

    async def _served(self, embedder: ProvenEmbedder, listed: ModelRow | None) -> Served:
        async with self._database.connection() as connection:
            known = await models.named(connection, embedder.model_id)
        if known is None or listed is None or not listed.embedded:
            raise ModelError("The index has no vectors of it.", remedy="Without --no-embed they are made.")
        backlog = Backlog(self._database, embedder, self._foreign, to_answer=False)
        return Served(embedder, known.id, known.dimension, known.name, backlog)

    async def _asked(
        self, searcher: Searcher, mode: Mode, name: str, questions: Sequence[Question]
    ) -> tuple[Judged, ...]:
        """Every question, asked one after the other; the first once more beforehand, to warm up for it."""
        total = len(questions) * (1 if mode is Mode.KEYWORD else 2)
        before = len(questions) * (mode is Mode.VECTOR)
        await searcher.search(self._as_asked(questions[0], mode))
        answers = []
        for number, question in enumerate(questions, 1):
            found = await searcher.search(self._as_asked(question, mode))
            answers.append(judged(question, found.citations, self._k(question), found.seconds))
            self._tell(CompareStep(name, embedding=False, done=before + number, total=total))
        return tuple(answers)

    def _as_asked(self, question: Question, mode: Mode) -> Asked:
        depth = max(self._k(question), DEPTH)
        return Asked(question.text, depth, mode, max_distance=self._settings.retrieval_max_distance)

    def _k(self, question: Question) -> int:
        return question.k or self._settings.retrieval_default_k


def _unheard(step: CompareStep) -> None:
    del step


def _unmeasured(each: _Candidate, listed: ModelRow | None, reason: str) -> Compared:
    name = each.name or f"{each.provider}/{each.model}"
    if listed is None:
        return Compared(name, each.provider, each.model, left_out=reason)
    embedded, passages = _coverage(listed)
    return Compared(
        name, each.provider, each.model, embedded, passages, in_use=listed.answers, left_out=reason
    )


def _measured(
    each: _Candidate, listed: ModelRow | None, hybrid: tuple[Judged, ...], meaning: tuple[Judged, ...]
) -> Compared:
    embedded, passages = _coverage(listed) if listed else (0, 0)
    caution = ""
    if embedded < passages:
        caution = f"It was measured with the vectors of {embedded:,} of {count(passages, 'passage')}."
    return Compared(
        each.name,
        each.provider,
        each.model,
        embedded,
        passages,
        in_use=listed is not None and listed.answers,
        caution=caution,
        score=score(hybrid),
        meaning=score(meaning),
        answers=hybrid,
        meaning_answers=meaning,
    )


def _coverage(listed: ModelRow) -> tuple[int, int]:
    return listed.embedded, listed.embedded + listed.pending + listed.failed

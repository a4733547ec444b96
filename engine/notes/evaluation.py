"""Eval: labelled questions asked through the very search in use, and the runs kept to be compared.

No model judges another, and no language model is asked: a citation of the right place is right.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import DatasetError, FolderError
from engine.notes import labelled, labelling
from engine.notes.evaluated import EvalAnswer, EvalRun, EvalStep
from engine.notes.scoring import DEPTH, judged, score
from engine.notes.tally import index_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.notes import Notes
    from engine.notes.labelled import Question
    from engine.notes.scoring import Judged, Score
    from engine.settings import Settings

KEPT = 1_000
"""Runs kept."""

FILE = "eval.json"
"""The dataset in the configuration folder, which `add` makes and a run without another takes."""

KEYWORDS = "keywords"
"""What answers where no model has vectors yet."""

# Groundedness as a share, and its change since the run of the same dataset before.
_RUNS = """
    SELECT id, at, dataset, model, k, total, correct, recall, mrr, seconds, coalesce(
        correct::float / total - lag(correct::float / total) OVER (PARTITION BY dataset ORDER BY id), 0)
    FROM eval_run
"""

_HISTORY = f"""
    SELECT * FROM ({_RUNS}) AS run
    WHERE %(dataset)s::text IS NULL OR dataset = %(dataset)s ORDER BY id DESC LIMIT %(limit)s
"""

_ANSWERS = """
    SELECT question_id, question, correct, rank, cited, expected
    FROM eval_answer WHERE run = %s ORDER BY position
"""

_BEFORE = (
    "SELECT correct::float / total, dataset_hash FROM eval_run WHERE dataset = %s ORDER BY id DESC LIMIT 1"
)

_KEEP = """
    INSERT INTO eval_run (dataset, dataset_hash, model, k, total, correct, recall, mrr, seconds)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id, at
"""

_KEEP_ANSWER = """
    INSERT INTO eval_answer (run, position, question_id, question, expected, correct, rank, cited)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""

_PRUNE = "DELETE FROM eval_run WHERE id <= (SELECT max(id) - %s FROM eval_run)"


@dataclass(frozen=True, slots=True)
class _Asked:
    """The questions of a file, all asked."""

    file: Path
    data: bytes
    questions: Sequence[Question]
    answers: Sequence[Judged]
    seconds: float


class Evaluation:
    """The eval of one engine."""

    def __init__(self, database: Database, settings: Settings, notes: Notes) -> None:
        self._database = database
        self._settings = settings
        self._notes = notes

    @property
    def own_file(self) -> Path:
        """Where `add` puts a question when no file is named."""
        return self._settings.paths.config_at / FILE

    async def dataset(self, path: Path | None = None) -> Path:
        """The file of questions that is meant: the named one, else the last that was run, else our own.

        Raises:
            DatasetError: none is named, and there is none.
        """
        if path is not None:
            return path
        last = await self.history(1)
        if last and Path(last[0].dataset).is_file():
            return Path(last[0].dataset)
        if self.own_file.is_file():
            return self.own_file
        raise DatasetError(
            "There are no labelled questions yet.",
            remedy='`noctuary eval add "QUESTION"` makes one of a search, or name a file of them.',
        )

    async def run(
        self, path: Path | None = None, *, on_step: Callable[[EvalStep], None] | None = None
    ) -> EvalRun:
        """Ask every question of a file (see `dataset`) and keep what came of it. A run that is cancelled
        keeps nothing.

        Raises:
            DatasetError: the file is not as it must be, or there is none.
            FolderError: nothing is indexed.
        """
        file = (await self.dataset(path)).resolve()
        data = await asyncio.to_thread(labelled.data, file)
        questions = await asyncio.to_thread(labelled.parse, data, str(file))
        async with self._database.connection() as connection:
            if not (await index_counts(connection)).passages:
                raise FolderError(
                    "The index holds no text.", remedy="`noctuary index FOLDER` reads a folder."
                )
        started = time.monotonic()
        answers = []
        for number, question in enumerate(questions, 1):
            answers.append(await self._ask(question))
            if on_step is not None:
                on_step(EvalStep(number, len(questions)))
        seconds = time.monotonic() - started
        async with self._database.transaction() as connection:
            return await self._keep(connection, _Asked(file, data, questions, answers, seconds))

    async def history(self, limit: int = 20, dataset: str | None = None) -> list[EvalRun]:
        """The newest runs, newest first, without their answers; all, or those of one file."""
        async with self._database.connection() as connection:
            cursor = await connection.execute(_HISTORY.encode(), {"dataset": dataset, "limit": limit})
            return [EvalRun(*row) for row in await cursor.fetchall()]

    async def last(self) -> EvalRun | None:
        """The newest run with its answers; None when there was none."""
        runs = await self.history(1)
        if not runs:
            return None
        (run,) = runs
        async with self._database.connection() as connection:
            cursor = await connection.execute(_ANSWERS, (run.id,))
            rows = await cursor.fetchall()
        answers = tuple(EvalAnswer(row[0], row[1], row[2], row[3], tuple(row[4]), row[5]) for row in rows)
        return replace(run, answers=answers)

    async def add(
        self,
        question: str,
        answer: str | None,
        *,
        path: Path | None = None,
        identity: str | None = None,
        k: int | None = None,
    ) -> tuple[Question, Path]:
        """Make a labelled question: `answer` ("path:L3-L9") answers it, or None: nothing does. It is
        added to the file (our own, when none is named), which is written whole or not at all.

        Raises:
            DatasetError: the file is not one of questions, has one of that id, or cannot be written.
        """
        file = path or self.own_file
        return await asyncio.to_thread(labelling.add, file, question, answer, identity, k), file

    async def _ask(self, question: Question) -> Judged:
        k = question.k or self._settings.retrieval_default_k
        found = await self._notes.search(question.text, k=max(k, DEPTH), trace=False)
        return judged(question, found.citations, k, found.seconds)

    async def _keep(self, connection: AsyncConnection, asked: _Asked) -> EvalRun:
        found = score(asked.answers)
        dataset, digest = str(asked.file), hashlib.sha256(asked.data).digest()
        cursor = await connection.execute(_BEFORE, (dataset,))
        before = await cursor.fetchone()
        identity, at = await self._keep_run(connection, dataset, digest, found, asked.seconds)
        rows = tuple(
            EvalAnswer(each.id, question.text, each.right, each.rank, each.cited, question.expected)
            for question, each in zip(asked.questions, asked.answers, strict=True)
        )
        for position, row in enumerate(rows):
            texts = [_storable(text) for text in (row.id, row.question, row.expected)]
            values = (identity, position, *texts, row.correct, row.rank, [*map(_storable, row.cited)])
            await connection.execute(_KEEP_ANSWER, values)
        await connection.execute(_PRUNE, (KEPT,))
        return EvalRun(
            identity,
            at,
            dataset,
            self._model(),
            self._settings.retrieval_default_k,
            found.questions,
            found.right,
            found.recall,
            found.mrr,
            asked.seconds,
            delta=found.groundedness - before[0] if before else 0.0,
            answers=rows,
            other_questions=before is not None and bytes(before[1]) != digest,
        )

    async def _keep_run(
        self, connection: AsyncConnection, dataset: str, digest: bytes, found: Score, seconds: float
    ) -> tuple[int, datetime]:
        """The id and the time of the kept run."""
        counts = (self._settings.retrieval_default_k, found.questions, found.right, found.recall, found.mrr)
        cursor = await connection.execute(_KEEP, (dataset, digest, self._model(), *counts, seconds))
        kept: tuple[int, datetime] | None = await cursor.fetchone()
        if kept is None:  # pragma: no cover - RETURNING gives the row
            raise DatasetError("The run was not kept.")
        return kept

    def _model(self) -> str:
        serving = self._notes.embedders.serving
        return serving.name if serving is not None else KEYWORDS


def _storable(text: str) -> str:
    """PostgreSQL's texts hold no NUL, and nobody could see one."""
    return text.replace("\0", "\N{SYMBOL FOR NULL}")

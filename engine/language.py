"""The language model of this engine, metered: every call is within the budget and in the ledger.

Optional: without LLM_PROVIDER nothing here is ever called, and nothing else needs it. A call that fails or is
cancelled is in the ledger too, by our own count of what was read and written until then.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.cleanup import to_its_end
from engine.errors import BudgetError, DatabaseError, LanguageError, PackageMissing
from engine.models.language.base import MOST_TOKENS, Completion, Tokens
from engine.models.language.calling import NotReached, estimate
from engine.models.language.opening import open_language

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from datetime import date

    from engine.database import Database
    from engine.models.language.base import LanguageModel, Message, Tool
    from engine.settings import Settings

_SPEND = """
    INSERT INTO language_use
        (purpose, provider, model, prompt_tokens, completion_tokens, estimated, failed)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
"""

_SPENT = "SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) FROM language_use WHERE at >= %s"

_LEDGER = """
    SELECT (at AT TIME ZONE %(zone)s)::date AS day, purpose, provider, model, count(*),
        count(*) FILTER (WHERE failed), sum(prompt_tokens), sum(completion_tokens), bool_or(estimated)
    FROM language_use WHERE at >= %(since)s
    GROUP BY day, purpose, provider, model
    ORDER BY day DESC, sum(prompt_tokens + completion_tokens) DESC, purpose, provider, model
"""

SHORTEST_ANSWER = 64
"""Tokens below which an answer is not worth its question."""

_log = logging.getLogger("noctuary.language")


class Purpose(StrEnum):
    """What a model is asked for: the ledger's columns."""

    ASK = "ask"
    WRITE = "write"
    DISTIL = "distil"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What one purpose took of one model on one day (of this machine's calendar)."""

    day: date
    purpose: str
    provider: str
    model: str
    calls: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    estimated: bool

    @property
    def tokens(self) -> int:
        """Read and written together, as the budget counts them."""
        return self.prompt_tokens + self.completion_tokens


class Language:
    """The chat model and the agent's model of one engine. Free to make: nothing is asked before it is used.

    What the settings lack (a provider, a key) is said when a model is asked, and by `why_not` before.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._models: dict[bool, LanguageModel] = {}
        self._under_way = 0
        self.limit = settings.llm_daily_token_limit
        """Tokens a day; 0: no limit."""

    @property
    def why_not(self) -> str:
        """Why no model can be asked; empty when one is set. Whether it answers shows when it is asked."""
        try:
            self._model(agent=False)
        except LanguageError as error:
            return str(error)
        return ""

    @property
    def configured(self) -> bool:
        """Whether a model is set, with what it needs."""
        return not self.why_not

    @property
    def name(self) -> str:
        """`provider/model` of the chat model; empty when none is set."""
        return self._model(agent=False).name if self.configured else ""

    @property
    def provider(self) -> str:
        """The provider's name; empty when none is set."""
        return self._settings.llm_provider or ""

    @property
    def local(self) -> bool:
        """Whether the model runs in the house, where it is taken for a small one."""
        settings = self._settings
        elsewhere = {"openai": settings.openai_base_url, "grok": settings.xai_base_url}
        return settings.llm_provider == "ollama" or bool(elsewhere.get(settings.llm_provider or ""))

    @property
    def model(self) -> str:
        """The chat model's name; empty when none is set."""
        return self._model(agent=False).model if self.configured else ""

    @property
    def agent_model(self) -> str:
        """The name of the model that calls tools; empty when none is set."""
        return self._model(agent=True).model if self.configured else ""

    async def complete(
        self,
        purpose: Purpose,
        messages: Sequence[Message],
        *,
        max_tokens: int = MOST_TOKENS,
        tools: Sequence[Tool] = (),
        agent: bool = False,
    ) -> Completion:
        """The next turn of a conversation.

        Raises:
            LanguageError: no model is set, or it cannot be had.
            BudgetError: the day's tokens are spent.
        """
        model = self._model(agent=agent)
        async with self._metered(purpose, model, messages, max_tokens) as call:
            return await model.complete(messages, max_tokens=call.max_tokens, tools=tools, meter=call)

    async def complete_json(
        self,
        purpose: Purpose,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        *,
        max_tokens: int = MOST_TOKENS,
        agent: bool = False,
    ) -> tuple[Any, Tokens]:
        """The next turn as JSON that the schema holds good.

        Raises:
            OutputError: what came was not valid, also after the last retry.
            LanguageError: no model is set, or it cannot be had.
            BudgetError: the day's tokens are spent.
        """
        model = self._model(agent=agent)
        async with self._metered(purpose, model, messages, max_tokens) as call:
            return await model.complete_json(messages, schema, max_tokens=call.max_tokens, meter=call)

    async def stream(
        self, purpose: Purpose, messages: Sequence[Message], *, max_tokens: int = MOST_TOKENS
    ) -> AsyncGenerator[str | Completion, None]:
        """The next turn piece by piece, and at last the whole. Close it to cancel.

        Raises:
            LanguageError: no model is set, it cannot be had, or it broke off.
            BudgetError: the day's tokens are spent.
        """
        model = self._model(agent=False)
        async with (
            self._metered(purpose, model, messages, max_tokens) as call,
            aclosing(model.stream(messages, max_tokens=call.max_tokens)) as pieces,
        ):
            async for piece in pieces:
                if isinstance(piece, Completion):
                    call.paid(piece.tokens)
                else:
                    call.wrote(len(piece))
                yield piece

    async def look(self) -> list[str]:
        """See that the models can be had, without a token spent. Returns their names, the chat model's first.

        Raises:
            LanguageError: none is set, or one cannot be had.
        """
        models = {model.name: model for model in (self._model(agent=False), self._model(agent=True))}
        for model in models.values():
            await model.look()
        return list(models)

    async def ledger(self, *, days: int = 30) -> list[LedgerRow]:
        """What was read and written in the last `days` days, today's first."""
        since = _midnight() - timedelta(days=days - 1)
        async with self._database.connection() as connection:
            cursor = await connection.execute(_LEDGER, {"since": since, "zone": _zone(since)})
            return [LedgerRow(*row) for row in await cursor.fetchall()]

    async def spent_today(self) -> int:
        """Tokens since midnight (of this machine's calendar), by every process on this database."""
        async with self._database.connection() as connection:
            cursor = await connection.execute(_SPENT, (_midnight(),))
            row = await cursor.fetchone()
        return int(row[0]) if row else 0

    async def close(self) -> None:
        """Close the connections to the models."""
        models, self._models = list(self._models.values()), {}
        await asyncio.gather(*(model.close() for model in models))

    def _model(self, *, agent: bool) -> LanguageModel:
        if agent not in self._models:
            self._models[agent] = open_language(self._settings, agent=agent)
        return self._models[agent]

    @asynccontextmanager
    async def _metered(
        self, purpose: Purpose, model: LanguageModel, messages: Sequence[Message], max_tokens: int
    ) -> AsyncIterator[_Call]:
        """One call, paid for whatever becomes of it."""
        call = _Call(self._reserve, max_tokens)
        failed = True
        try:
            await call.again(messages)
            yield call
            failed = False
        except (NotReached, PackageMissing):
            call.unpaid = False
            raise
        finally:
            try:
                if call.messages:  # else the budget did not let it begin
                    await to_its_end(self._spend(purpose, model, call.took, failed=failed))
            finally:
                self._under_way -= call.reserved

    async def _reserve(self, call: _Call, asked: int) -> None:
        """Set aside what an asking may take, with what the call took before and is not in the ledger yet.

        Raises:
            BudgetError: too little is left.
        """
        self._under_way += call.settled.total - call.reserved
        call.reserved = call.settled.total
        call.max_tokens = min(call.most, await self._left(asked, call.most))
        self._under_way += asked + call.max_tokens
        call.reserved += asked + call.max_tokens

    async def _left(self, asked: int, max_tokens: int) -> int:
        """Tokens the budget leaves for an answer.

        Raises:
            BudgetError: too few.
        """
        if not self.limit:
            return max_tokens
        spent = await self.spent_today()
        left = self.limit - spent - self._under_way - asked
        if left < min(max_tokens, SHORTEST_ANSWER):
            raise BudgetError(
                f"Of today's {self.limit:,} tokens {spent:,} are spent, and this call needs about "
                f"{asked + min(max_tokens, SHORTEST_ANSWER):,}.",
                remedy="It begins anew at midnight; LLM_DAILY_TOKEN_LIMIT sets it.",
            )
        return left

    async def _spend(self, purpose: Purpose, model: LanguageModel, tokens: Tokens, *, failed: bool) -> None:
        import psycopg

        values = (str(purpose), model.provider, model.model, tokens.prompt, tokens.completion)
        try:
            async with self._database.connection() as connection:
                await connection.execute(_SPEND, (*values, tokens.estimated, failed))
        except (DatabaseError, psycopg.Error) as error:
            # The answer is there and paid for; it is not lost for a row.
            _log.warning("%d tokens of %s are missing in the ledger: %s", tokens.total, model.name, error)


@dataclass(slots=True)
class _Call:
    """A call under way, as its meter: how long its answer may be, and what is known of what it took."""

    reserve: Callable[[_Call, int], Awaitable[None]]
    most: int
    max_tokens: int = 0
    reserved: int = 0
    settled: Tokens = field(default_factory=Tokens)
    """What its whole answers took."""
    messages: Sequence[Message] = ()
    written: int = 0
    unpaid: bool = False
    """Whether something was asked that no count has come for."""

    async def again(self, messages: Sequence[Message]) -> int:
        """See `Meter.again`; the first time too."""
        await self.reserve(self, estimate(messages, 0).prompt)
        self.messages, self.written, self.unpaid = messages, 0, True
        return self.max_tokens

    def wrote(self, characters: int) -> None:
        """See `Meter.wrote`."""
        self.written += characters

    def paid(self, tokens: Tokens) -> None:
        """See `Meter.paid`."""
        self.settled += tokens
        self.unpaid = False

    @property
    def took(self) -> Tokens:
        """Told by the provider as far as it did, else by our own count."""
        return self.settled + estimate(self.messages, self.written) if self.unpaid else self.settled


def _midnight() -> datetime:
    return datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)


def _zone(at: datetime) -> str:
    """This machine's distance from UTC as PostgreSQL takes it: positive is west there."""
    offset = at.utcoffset() or timedelta()
    minutes = -int(offset.total_seconds()) // 60
    sign = "-" if minutes < 0 else "+"
    return f"UTC{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"

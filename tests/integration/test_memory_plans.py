"""What a turn asks of the database is read by its index, and of its own brain alone, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from engine.memory import lesson_rows, packets, recalling, turntokens
from engine.memory.brains import entered
from engine.memory.model import BrainKey

if TYPE_CHECKING:
    from engine.database import Database

KEY = BrainKey(user="2")
VECTOR = "[1,2,3]"

_FILL = """
    INSERT INTO brain (core, end_user) SELECT 1, user_::text FROM generate_series(1, 4) AS user_;
    INSERT INTO channel (brain, name, kind) SELECT id, 'talk', 'recorded' FROM brain;
    CREATE TEMPORARY TABLE said AS SELECT channel.brain, channel.id AS channel,
        (row_number() OVER ())::integer AS id FROM channel, generate_series(1, 4000);
    INSERT INTO entry (brain, id, channel, author, text, at)
        SELECT brain, id, channel, 'user', 'owls', now() FROM said;
    INSERT INTO packet (brain, id, channel, input, kind, confidence, length, at)
        SELECT brain, id, channel, id, 'raw', 0.5, 1, now() - make_interval(mins => id) FROM said;
    INSERT INTO packet_posting (brain, term, packet, tf)
        SELECT brain, term, id, 1 FROM said, unnest(ARRAY['owl', id::text]) AS term;
    INSERT INTO packet_embedding (model, brain, packet, state, vector)
        SELECT model.id, brain, said.id, 'embedded', '[1,2,3]' FROM said, model;
    INSERT INTO lesson (brain, text, created_by, expires_at)
        SELECT brain.id, 'x', 'x', now() + interval '1 day' FROM brain, generate_series(1, 1000);
    INSERT INTO lesson_embedding (model, brain, lesson, state, vector)
        SELECT model.id, brain, lesson.id, 'embedded', '[1,2,3]' FROM lesson, model;
    INSERT INTO turn_token (brain, hash, input, door, expires_at)
        SELECT brain.id, sha256((brain.id || ' ' || turn)::bytea), 'x', 'x', now() + interval '1 hour'
        FROM brain, generate_series(1, 1000) AS turn;
    ANALYZE;
"""

ASKED: dict[str, tuple[str, dict[str, Any] | tuple[Any, ...]]] = {
    "the packets": (recalling._PACKETS, ("brain",)),
    "the speakers": (recalling._SPEAKERS, ("brain",)),
    "the postings": (recalling._POSTINGS, ("brain", ["owl", "7"])),
    "the distances": (recalling._DISTANCES, (VECTOR, "model", "brain")),
    "the texts of the best": (packets._BY_ID, {"brain": "brain", "packets": [4001, 4002, 4003]}),
    "the newest": (packets._RECENT, {"brain": "brain", "limit": 20}),
    "the lessons": (
        lesson_rows._GIVEN,
        {
            "brain": "brain",
            "model": "model",
            "vector": VECTOR,
            "floor": 0.5,
            "often": 2,
            "always": 3,
            "limit": 8,
        },
    ),
    "a token": (turntokens._TAKE, ("brain", b"x" * 32)),
    "old tokens": (turntokens._TIDY, ("brain",)),
}


@pytest.mark.parametrize("asked", ASKED)
async def test_a_statement_of_a_turn_reads_its_own_brain_alone(
    database: Database, database_url: str, asked: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("SET search_path = noctuary, public")
        row = admin.execute("SELECT register_model('tests', 3, 'bundled', 'tests')").fetchone()
        admin.execute(_FILL.encode())
    assert row is not None
    statement, values = ASKED[asked]
    async with entered(database, KEY) as (connection, brain):
        known = {"brain": brain, "model": row[0]}
        filled = (
            {name: known.get(str(value), value) for name, value in values.items()}
            if isinstance(values, dict)
            else tuple(known.get(str(value), value) for value in values)
        )
        cursor = await connection.execute(f"EXPLAIN {statement}".encode(), filled)
        plan = "\n".join(line for (line,) in await cursor.fetchall())
    for table in ("packet", "packet_embedding", "packet_posting", "entry", "turn_token"):
        assert f"Seq Scan on {table} " not in f"{plan} ", plan

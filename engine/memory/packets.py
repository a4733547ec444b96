"""Packets kept and read: a turn becomes evidence, a packet, its keyword postings and a place in the backlog
of vectors, all in one statement.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.memory.model import CONFIDENCE, Kind, PacketRow, SourceTurn
from engine.memory.terms import turn_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    from engine.brain.channels import NewEntry

_ASKS = ("?", "\uff1f", "\u061f")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

# Ids are drawn first, so that the rows that point at each other go in one round trip.
_KEEP = """
    WITH given AS MATERIALIZED (
        SELECT nextval('entry_id_seq')::integer AS input_id,
            CASE WHEN response IS NOT NULL THEN nextval('entry_id_seq')::integer END AS response_id,
            nextval('packet_id_seq')::integer AS packet_id, new.*
        FROM json_to_recordset(%(rows)s::json) AS new (input json, response json, kind text, confidence real,
            recalled boolean, length integer, asks boolean, terms json)
    ), said AS (
        SELECT input_id AS id, input AS entry FROM given
        UNION ALL SELECT response_id, response FROM given WHERE response IS NOT NULL
    ), entries AS (
        INSERT INTO entry (brain, channel, id, author, speaker, text, at, origin, key, recalled, masked)
        SELECT %(brain)s, %(channel)s, said.id, new.author, new.speaker, new.text, new.at, new.origin,
            new.key, new.recalled, new.masked
        FROM said CROSS JOIN LATERAL json_to_record(said.entry) AS new (author text, speaker text, text text,
            at timestamptz, origin text, key text, recalled boolean, masked integer)
    ), packets AS (
        INSERT INTO packet (brain, id, channel, input, response, kind, confidence, recalled, length, speaker,
            asks, at)
        SELECT %(brain)s, packet_id, %(channel)s, input_id, response_id, kind, confidence, recalled, length,
            input ->> 'speaker', asks, (input ->> 'at')::timestamptz
        FROM given
    ), postings AS (
        INSERT INTO packet_posting (brain, term, packet, tf)
        SELECT %(brain)s, posting.key, packet_id, posting.value::smallint
        FROM given CROSS JOIN LATERAL json_each_text(terms) AS posting
    ), embeddings AS (
        INSERT INTO packet_embedding (model, brain, packet)
        SELECT model, %(brain)s, packet_id FROM given CROSS JOIN unnest(%(models)s::smallint[]) AS model
    )
    SELECT packet_id FROM given ORDER BY packet_id
"""

# A vector is looked for packet by packet, each model's: as one set, those of all brains would be read.
_ROWS = """
    SELECT packet.id, input.text, coalesce(response.text, ''), packet.kind, packet.confidence, packet.at,
        channel.name, input.speaker, input.origin, packet.recalled,
        EXISTS (SELECT FROM model CROSS JOIN LATERAL (SELECT FROM packet_embedding AS known
            WHERE known.model = model.id AND known.brain = packet.brain AND known.packet = packet.id
                AND known.state = 'embedded' LIMIT 1) AS vector)
    FROM packet
    JOIN channel ON channel.brain = packet.brain AND channel.id = packet.channel
    JOIN entry AS input ON input.brain = packet.brain AND input.id = packet.input
    LEFT JOIN entry AS response ON response.brain = packet.brain AND response.id = packet.response
    WHERE packet.brain = %(brain)s
"""

_RECENT = f"{_ROWS} ORDER BY packet.at DESC, packet.id DESC LIMIT %(limit)s"
_BY_ID = f"{_ROWS} AND packet.id = ANY(%(packets)s)"

_TURNS = """
    SELECT packet.id, packet.at, channel.name, input.origin, packet.kind, input.speaker, input.text,
        input.recalled OR packet.recalled, coalesce(response.text, ''), coalesce(response.recalled, false)
    FROM packet
    JOIN channel ON channel.brain = packet.brain AND channel.id = packet.channel
    JOIN entry AS input ON input.brain = packet.brain AND input.id = packet.input
    LEFT JOIN entry AS response ON response.brain = packet.brain AND response.id = packet.response
    WHERE packet.brain = %s AND packet.id = ANY(%s) ORDER BY packet.at, packet.id
"""


@dataclass(frozen=True, slots=True)
class NewPacket:
    """A turn to be kept: what was said, and what was answered, if anything."""

    input: NewEntry
    response: NewEntry | None = None
    kind: Kind = Kind.RAW
    recalled: bool = False


def storable(text: str) -> str:
    """The text with what the database's UTF-8 does not hold (NUL, halves of surrogate pairs) as U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def packet_text(text: str, response: str) -> str:
    """What of a turn is searched: what was said and what was answered."""
    return f"{text}\n{response}" if response else text


def written(packets: Sequence[NewPacket]) -> str:
    """The packets as `keep` takes them. It may be called in a thread: it finds the terms of all texts."""
    return json.dumps([_row(packet) for packet in packets], ensure_ascii=False)


def _row(packet: NewPacket) -> dict[str, Any]:
    text = packet_text(packet.input.text, packet.response.text if packet.response else "")
    found = turn_terms(f"{packet.input.speaker} {text}")
    return {
        "input": _entry(packet.input),
        "response": _entry(packet.response) if packet.response else None,
        "kind": packet.kind,
        "confidence": CONFIDENCE[packet.kind],
        "recalled": packet.recalled,
        "length": len(found),
        "asks": text.rstrip().endswith(_ASKS),
        "terms": {term: min(count, 32_767) for term, count in Counter(found).items()},
    }


def _entry(entry: NewEntry) -> dict[str, Any]:
    return {
        "author": entry.author,
        "speaker": entry.speaker,
        "text": entry.text,
        "at": entry.at.isoformat(),
        "origin": entry.origin,
        "key": entry.key,
        "recalled": entry.recalled,
        "masked": entry.masked,
    }


async def keep(
    connection: AsyncConnection, brain: int, channel: int, rows: str, models: Sequence[int]
) -> list[int]:
    """Keep packets (`written`) in a channel, each to get its vector of each of `models`. Returns their ids,
    in the order given.
    """
    parameters = {"rows": rows, "brain": brain, "channel": channel, "models": list(models)}
    cursor = await connection.execute(_KEEP, parameters)
    return [row[0] for row in await cursor.fetchall()]


async def recent(connection: AsyncConnection, brain: int, limit: int) -> list[PacketRow]:
    """The newest packets, newest first."""
    cursor = await connection.execute(_RECENT, {"brain": brain, "limit": limit})
    return [_packet_row(row) for row in await cursor.fetchall()]


async def by_id(connection: AsyncConnection, brain: int, packets: Sequence[int]) -> dict[int, PacketRow]:
    """Some packets of the brain; one that is not there is left out."""
    cursor = await connection.execute(_BY_ID, {"brain": brain, "packets": list(packets)})
    return {row[0]: _packet_row(row) for row in await cursor.fetchall()}


async def turns(connection: AsyncConnection, brain: int, packets: Sequence[int]) -> list[SourceTurn]:
    """The turns behind packets, oldest first, with who said them and whether any was recalled text."""
    cursor = await connection.execute(_TURNS, (brain, list(packets)))
    return [
        SourceTurn(
            packet=row[0],
            at=row[1],
            channel=row[2],
            origin=row[3],
            kind=Kind(row[4]),
            speaker=row[5],
            input=row[6],
            input_recalled=row[7],
            response=row[8],
            response_recalled=row[9],
        )
        for row in await cursor.fetchall()
    ]


def _packet_row(row: Sequence[Any]) -> PacketRow:
    return PacketRow(row[0], row[1], row[2], Kind(row[3]), *row[4:])

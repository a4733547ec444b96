"""A database large enough for the planner to have a choice, filled in a few seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from tests.conftest import Server

DIMENSION = 384
VECTORS = 4_000

# The vectors differ in 16 directions: real texts do not fill all 384 either, and noise that does is
# what no index of neighbours can be good at.
_FILL = """
    SELECT setseed(0.5);
    INSERT INTO folder (path) VALUES ('/notes');
    INSERT INTO file (folder, path, hash, size, mtime_ns, ctime_ns)
        SELECT 1, format('d%s/n%s.md', n % 100, n), sha256(n::text::bytea), 1, n, n FROM generate_series(1, 5000) n;
    INSERT INTO passage (hash, heading, text, length)
        SELECT sha256(n::text::bytea), 'Heading', 'text ' || n, 2 FROM generate_series(1, 50000) n;
    UPDATE passage SET orphaned_at = now() WHERE id % 1000 = 0;
    INSERT INTO chunk (file, position, line_start, line_end, passage)
        SELECT 1 + n % 5000, n / 5000, 1, 1, 1 + n FROM generate_series(0, 49999) n WHERE (n + 1) % 1000 <> 0;
    INSERT INTO segment (passages, length) SELECT 10000, 20000 FROM generate_series(1, 3);
    INSERT INTO posting (term, segment, data)
        SELECT 'term' || n, s, '\\x01000000020001' FROM generate_series(1, 20000) n, generate_series(1, 3) s;
    INSERT INTO job (kind, status, folder, path, priority, finished_at)
        SELECT 'ingest_path', 'done', 1, n || '.md', n, now() FROM generate_series(1, 30000) n;
    INSERT INTO job (kind, status, folder, path, priority, lease_until)
        SELECT 'ingest_path', CASE WHEN n % 20 = 0 THEN 'processing' WHEN n % 50 = 1 THEN 'failed' ELSE 'pending' END,
            1, n || '.md', n, now() FROM generate_series(1, 3000) n;
    INSERT INTO embedding (model, passage, priority, state, vector)
        SELECT {model}, n, n, 'embedded',
            (SELECT array_agg(CASE WHEN place <= 16 THEN random() - 0.5 ELSE 0 END)
                FROM generate_series(1, 384) place WHERE n > 0)::halfvec
        FROM generate_series(1, {vectors}) n;
    INSERT INTO embedding (model, passage, priority)
        SELECT {model}, n, n FROM generate_series({vectors} + 1, 50000) n;
"""


def fill(server: Server, name: str) -> str:
    """A database of that name with the rows above; its address. The vector index is built afterwards."""
    url = server.create(name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = noctuary, public")
        row = connection.execute(
            "SELECT register_model('bulk', %s, 'bundled', 'bulk')", (DIMENSION,)
        ).fetchone()
        assert row
        index, definition = connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE indexdef LIKE '%hnsw%'"
        ).fetchall()[0]
        connection.execute(f"DROP INDEX {index}".encode())
        connection.execute(_FILL.format(model=row[0], vectors=VECTORS).encode())
        connection.execute(definition.encode())
        connection.execute("VACUUM ANALYZE")
    return url

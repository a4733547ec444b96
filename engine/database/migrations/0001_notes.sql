-- Notes: folders, files, passages, chunks, the queue, the keyword index and the vectors.
-- A passage is a distinct text under its heading path; a chunk is a place in a file where a passage
-- stands. Keyword postings and vectors hang on passages, so that text which moves, is copied, is
-- renamed or comes back is never indexed or embedded again.

CREATE TABLE folder (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    path text COLLATE "C" NOT NULL UNIQUE,
    -- The file system the root was on when it was last seen with notes: an unmounted root has another.
    device bigint,
    added_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE file (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    folder integer NOT NULL REFERENCES folder ON DELETE CASCADE,
    path text COLLATE "C" NOT NULL,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    size bigint NOT NULL,
    mtime_ns bigint NOT NULL,
    -- 0 when the file was so young when it was read that its time stamps cannot vouch for it.
    ctime_ns bigint NOT NULL,
    format smallint NOT NULL DEFAULT 1,       -- of the program that chunked it: an older one is drift
    indexed_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (folder, path)
);

CREATE TABLE passage (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    -- How its terms were made. A program that makes them otherwise posts the text again as a passage of
    -- its own, which takes the vectors over.
    format smallint NOT NULL DEFAULT 1,
    heading text NOT NULL,                    -- titles from the outermost in, one a line
    text text NOT NULL,
    length integer NOT NULL CHECK (length >= 0),   -- terms
    orphaned_at timestamptz,                  -- since when no file holds it
    CONSTRAINT passage_hash_key UNIQUE (hash, format)
);
CREATE INDEX passage_orphaned ON passage (id) INCLUDE (length) WHERE orphaned_at IS NOT NULL;

CREATE TABLE chunk (
    file integer NOT NULL REFERENCES file ON DELETE CASCADE,
    position integer NOT NULL,
    line_start integer NOT NULL CHECK (line_start >= 1),
    line_end integer NOT NULL CHECK (line_end >= line_start),
    passage integer NOT NULL REFERENCES passage,
    PRIMARY KEY (file, position)
);
CREATE INDEX chunk_passage ON chunk (passage, file, position);

CREATE TABLE job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('ingest_path', 'delete_path')),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'processing', 'done', 'failed')),
    folder integer NOT NULL REFERENCES folder ON DELETE CASCADE,
    path text COLLATE "C" NOT NULL,
    priority bigint NOT NULL DEFAULT 0,       -- the file's modification time in ns: newest first
    confirmed boolean NOT NULL DEFAULT false, -- a human asked: deletes even under an empty root
    attempts integer NOT NULL DEFAULT 0,      -- times it was claimed
    error text,
    worker text,
    not_before timestamptz NOT NULL DEFAULT now(),
    lease_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz
);
-- The two rules of the queue: bursts coalesce into one waiting job a path, and no two workers ever
-- hold the same path, so an older reading can never be written over a newer one.
CREATE UNIQUE INDEX job_pending ON job (folder, path) WHERE status = 'pending';
CREATE UNIQUE INDEX job_processing ON job (folder, path) WHERE status = 'processing';
CREATE INDEX job_queue ON job (priority DESC, id) WHERE status = 'pending';
CREATE INDEX job_failed ON job (folder, path) WHERE status = 'failed';
CREATE INDEX job_status ON job (status, id DESC);
CREATE INDEX job_finished ON job (finished_at) WHERE status = 'done';

-- The keyword index: per term and segment the packed postings (passage, length, term frequency).
-- A segment is what one transaction added; small ones are merged in the background.
CREATE TABLE segment (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    passages integer NOT NULL,
    length bigint NOT NULL
);
CREATE TABLE posting (
    term text COLLATE "C" NOT NULL,
    -- No foreign key: a posting is only ever written and removed with its segment, and the check
    -- would be run a million times in a first indexing.
    segment integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (term, segment)
);
ALTER TABLE posting ALTER COLUMN data SET STORAGE EXTERNAL;  -- packed numbers hardly compress
CREATE INDEX posting_segment ON posting (segment);

CREATE TABLE model (
    id smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    dimension integer NOT NULL CHECK (dimension BETWEEN 1 AND 4000),
    added_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE embedding (
    model smallint NOT NULL REFERENCES model ON DELETE CASCADE,
    passage integer NOT NULL REFERENCES passage ON DELETE CASCADE,
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'embedded', 'failed')),
    priority bigint NOT NULL DEFAULT 0,
    error text,
    vector halfvec,
    PRIMARY KEY (model, passage),
    CHECK ((state = 'embedded') = (vector IS NOT NULL))
);
CREATE INDEX embedding_backlog ON embedding (model, priority DESC, passage) WHERE state = 'pending';
CREATE INDEX embedding_failed ON embedding (model, passage) WHERE state = 'failed';

-- A model brings its own index: vectors of different models and dimensions share the table and
-- never a space. The engine owns no table, so the owner's function makes the index for it.
CREATE FUNCTION register_model(model_name text, model_dimension integer) RETURNS smallint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = noctuary, public, pg_temp AS $$
DECLARE
    known model%ROWTYPE;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('noctuary:model', 0));
    SELECT * INTO known FROM model WHERE name = model_name;
    IF FOUND THEN
        IF known.dimension <> model_dimension THEN
            RAISE EXCEPTION 'model % has dimension %, not %', model_name, known.dimension, model_dimension
                USING ERRCODE = 'data_exception';
        END IF;
        RETURN known.id;
    END IF;
    INSERT INTO model (name, dimension) VALUES (model_name, model_dimension) RETURNING * INTO known;
    EXECUTE format(
        'CREATE INDEX %I ON embedding USING hnsw ((vector::halfvec(%s)) halfvec_cosine_ops)'
        ' WITH (m = 16, ef_construction = 64) WHERE model = %s AND state = ''embedded''',
        'embedding_vector_' || known.id, known.dimension, known.id);
    RETURN known.id;
END $$;
REVOKE ALL ON FUNCTION register_model FROM PUBLIC;

-- The planner knows nothing of tables that were just filled, and an embedded server may be stopped before
-- autovacuum ever looks at them: whoever filled them has them analysed. Texts are left out.
CREATE FUNCTION refresh_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = noctuary, public, pg_temp AS $$
BEGIN
    ANALYZE folder, file, chunk, segment, job, model, posting (term, segment),
        passage (id, hash, length, orphaned_at), embedding (model, passage, state, priority);
END $$;
REVOKE ALL ON FUNCTION refresh_statistics FROM PUBLIC;

-- Who watches a folder now, for every process to show.
CREATE TABLE watcher (
    folder integer PRIMARY KEY REFERENCES folder ON DELETE CASCADE,
    process text NOT NULL,
    mode text NOT NULL,
    reason text NOT NULL DEFAULT '',
    beat_at timestamptz NOT NULL DEFAULT now()
);

-- The change feed: one message a table and transaction, and none for a statement that touched no row
-- (a worker that looks into an empty queue would wake itself for ever).
CREATE FUNCTION notify_change() RETURNS trigger LANGUAGE plpgsql SET search_path = noctuary, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM changed) THEN
        PERFORM pg_notify('noctuary', TG_TABLE_NAME);
    END IF;
    RETURN NULL;
END $$;

DO $$
DECLARE
    watched text;
BEGIN
    FOREACH watched IN ARRAY ARRAY['folder', 'file', 'job', 'embedding'] LOOP
        EXECUTE format('CREATE TRIGGER notify_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed'
            ' FOR EACH STATEMENT EXECUTE FUNCTION notify_change()', watched);
        EXECUTE format('CREATE TRIGGER notify_update AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed'
            ' FOR EACH STATEMENT EXECUTE FUNCTION notify_change()', watched);
        EXECUTE format('CREATE TRIGGER notify_delete AFTER DELETE ON %I REFERENCING OLD TABLE AS changed'
            ' FOR EACH STATEMENT EXECUTE FUNCTION notify_change()', watched);
    END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE
    ON folder, file, passage, chunk, job, segment, posting, embedding, watcher TO noctuary_engine;
GRANT SELECT ON model TO noctuary_engine;
GRANT EXECUTE ON FUNCTION register_model, refresh_statistics TO noctuary_engine;

-- Memory: brains, their evidence, packets, lessons. Everything that belongs to a brain is a row of it, and
-- row-level security holds each transaction to the brain it entered: none entered means no rows and no writes.

-- ---------------------------------------------------------------------------------------------------------
-- Scope. `noctuary.brain` is a brain's id for this transaction; '*' is the console of the person who owns
-- everything: it reads all brains and writes to none.

CREATE TABLE core (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account text COLLATE "C" NOT NULL CHECK (account <> ''),
    slug text COLLATE "C" NOT NULL CHECK (slug ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
    name text NOT NULL,
    is_default boolean NOT NULL DEFAULT false,
    added_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (account, slug)
);
CREATE UNIQUE INDEX core_default ON core (account) WHERE is_default;

-- The end user's name is compared byte by byte: another Unicode form is another user.
CREATE TABLE brain (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    core integer NOT NULL REFERENCES core,
    end_user text COLLATE "C" NOT NULL,          -- '' is the core's own brain
    added_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (core, end_user)
);

CREATE FUNCTION scope_brain() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN current_setting('noctuary.brain', true) ~ '^[0-9]{1,9}$'
        THEN current_setting('noctuary.brain', true)::integer END
$$;
CREATE FUNCTION scope_all() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(current_setting('noctuary.brain', true) = '*', false)
$$;
CREATE FUNCTION scope_account() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT nullif(current_setting('noctuary.account', true), '')
$$;

-- Enters the brain of a whole key until the transaction ends. Returns its id; 0 where it has no rows yet and
-- `make` is false; NULL where the account has no such core. A core that is not named is the default one.
CREATE FUNCTION enter_brain(of_account text, core_slug text, of_user text, make boolean) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = noctuary, public, pg_temp AS $$
DECLARE
    of_core integer;
    found_brain integer;
BEGIN
    PERFORM set_config('noctuary.account', of_account, true);
    PERFORM set_config('noctuary.brain', '', true);
    SELECT id INTO of_core FROM core
        WHERE account = of_account AND CASE WHEN core_slug IS NULL THEN is_default ELSE slug = core_slug END;
    IF of_core IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT id INTO found_brain FROM brain WHERE core = of_core AND end_user = of_user;
    IF found_brain IS NULL AND make THEN
        INSERT INTO brain (core, end_user) VALUES (of_core, of_user)
            ON CONFLICT (core, end_user) DO NOTHING RETURNING id INTO found_brain;
        IF found_brain IS NULL THEN  -- another transaction was quicker
            SELECT id INTO found_brain FROM brain WHERE core = of_core AND end_user = of_user;
        END IF;
    END IF;
    PERFORM set_config('noctuary.brain', coalesce(found_brain, 0)::text, true);
    RETURN coalesce(found_brain, 0);
END $$;
REVOKE ALL ON FUNCTION enter_brain FROM PUBLIC;

-- Cores are made by the person at the keyboard. The first of an account is its default.
CREATE FUNCTION add_core(of_account text, core_slug text, core_name text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = noctuary, public, pg_temp AS $$
DECLARE
    made integer;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('noctuary:core', 0));
    INSERT INTO core (account, slug, name, is_default)
        VALUES (of_account, core_slug, core_name, NOT EXISTS (SELECT FROM core WHERE account = of_account))
        ON CONFLICT (account, slug) DO NOTHING RETURNING id INTO made;
    RETURN made;
END $$;
REVOKE ALL ON FUNCTION add_core FROM PUBLIC;

INSERT INTO core (account, slug, name, is_default) VALUES ('local', 'default', 'Default', true);

-- ---------------------------------------------------------------------------------------------------------
-- Evidence: channels and immutable entries. A packet points at its entries; nothing ever changes them.

CREATE TABLE channel (
    brain integer NOT NULL REFERENCES brain,
    id integer GENERATED ALWAYS AS IDENTITY,
    name text COLLATE "C" NOT NULL,
    kind text NOT NULL CHECK (kind IN ('recorded', 'claude-code', 'codex', 'chatgpt', 'jsonl')),
    metadata jsonb NOT NULL DEFAULT '{}',
    added_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (brain, id),
    UNIQUE (brain, name)
);

CREATE TABLE entry (
    brain integer NOT NULL REFERENCES brain,
    id integer GENERATED ALWAYS AS IDENTITY,
    channel integer NOT NULL,
    author text NOT NULL CHECK (author IN ('user', 'assistant', 'system', 'tool')),
    speaker text NOT NULL DEFAULT '',            -- a name, where one is told
    text text NOT NULL,
    at timestamptz NOT NULL,
    origin text NOT NULL DEFAULT '',             -- the door, or the file and line
    key text COLLATE "C",                        -- what an import knows it by again
    recalled boolean NOT NULL DEFAULT false,     -- it was itself recalled text
    masked integer NOT NULL DEFAULT 0,           -- secrets masked in it
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (brain, id),
    FOREIGN KEY (brain, channel) REFERENCES channel (brain, id)
);
CREATE UNIQUE INDEX entry_key ON entry (brain, channel, key) WHERE key IS NOT NULL;
CREATE INDEX entry_order ON entry (brain, channel, at, id);

-- ---------------------------------------------------------------------------------------------------------
-- Packets: a turn as it is recalled and learned from.

CREATE TABLE packet (
    brain integer NOT NULL REFERENCES brain,
    id integer GENERATED ALWAYS AS IDENTITY,
    channel integer NOT NULL,
    input integer NOT NULL,
    response integer,
    kind text NOT NULL CHECK (kind IN ('raw', 'correction', 'overwrite')),
    confidence real NOT NULL CHECK (confidence > 0 AND confidence <= 1),
    recalled boolean NOT NULL DEFAULT false,     -- its input was recalled text: never learned from
    length integer NOT NULL CHECK (length >= 0), -- terms
    at timestamptz NOT NULL,                     -- when it was said
    recorded_at timestamptz NOT NULL DEFAULT now(),
    run integer,                                 -- the synthesis that has seen it
    PRIMARY KEY (brain, id),
    FOREIGN KEY (brain, channel) REFERENCES channel (brain, id),
    FOREIGN KEY (brain, input) REFERENCES entry (brain, id),
    FOREIGN KEY (brain, response) REFERENCES entry (brain, id)
);
CREATE UNIQUE INDEX packet_input ON packet (brain, input);
CREATE INDEX packet_order ON packet (brain, channel, at, id);
CREATE INDEX packet_newest ON packet (brain, at DESC, id DESC);
CREATE INDEX packet_unseen ON packet (brain, id) WHERE run IS NULL AND NOT recalled AND kind <> 'overwrite';

-- The keyword index of a brain: a packed posting (engine.text.ranking.POSTING) a row.
CREATE TABLE packet_posting (
    brain integer NOT NULL,
    term text COLLATE "C" NOT NULL,
    packet integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (brain, term, packet) INCLUDE (data)
);

CREATE TABLE packet_embedding (
    model smallint NOT NULL REFERENCES model ON DELETE CASCADE,
    brain integer NOT NULL,
    packet integer NOT NULL,
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'embedded', 'failed')),
    error text,
    vector halfvec,
    PRIMARY KEY (model, brain, packet),
    FOREIGN KEY (brain, packet) REFERENCES packet (brain, id),
    CHECK ((state = 'embedded') = (vector IS NOT NULL))
);
CREATE INDEX packet_embedding_backlog ON packet_embedding (model, packet DESC) WHERE state = 'pending';

-- What the end user last said of himself, for the overwrite check.
CREATE TABLE attribute (
    brain integer NOT NULL REFERENCES brain,
    key text COLLATE "C" NOT NULL,
    value text NOT NULL,
    packet integer NOT NULL,
    PRIMARY KEY (brain, key),
    FOREIGN KEY (brain, packet) REFERENCES packet (brain, id)
);

-- A prepared turn. The token itself is known to its caller alone.
CREATE TABLE turn_token (
    brain integer NOT NULL REFERENCES brain,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    input text NOT NULL,
    masked integer NOT NULL DEFAULT 0,
    channel text,
    door text NOT NULL,
    sources integer[] NOT NULL DEFAULT '{}',     -- what was recalled for it
    lessons integer[] NOT NULL DEFAULT '{}',
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    answer_hash bytea,                           -- of the answer it was used with: the same again is no error
    packet integer,
    PRIMARY KEY (brain, hash)
);
CREATE INDEX turn_token_expiry ON turn_token (brain, expires_at);

-- ---------------------------------------------------------------------------------------------------------
-- Synthesis: runs, the clusters they made, and the lessons that came of them.

CREATE TABLE synthesis_run (
    brain integer NOT NULL REFERENCES brain,
    id integer GENERATED ALWAYS AS IDENTITY,
    distiller text NOT NULL CHECK (distiller IN ('model', 'caller', 'human')),
    actor text NOT NULL,
    state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'completed', 'failed')),
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    packets_scanned integer NOT NULL DEFAULT 0,
    clusters integer NOT NULL DEFAULT 0,         -- made by it
    created integer NOT NULL DEFAULT 0,
    strengthened integer NOT NULL DEFAULT 0,
    tombstoned integer NOT NULL DEFAULT 0,       -- not written: a human had deleted the like
    nothing integer NOT NULL DEFAULT 0,          -- NONE: nothing durable
    failed integer NOT NULL DEFAULT 0,
    model text NOT NULL DEFAULT '',
    prompt_version text NOT NULL DEFAULT '',
    error text NOT NULL DEFAULT '',
    token_hash bytea,                            -- of a batch handed to the caller's model
    token_expires_at timestamptz,
    PRIMARY KEY (brain, id)
);
CREATE INDEX synthesis_run_token ON synthesis_run (brain, token_hash) WHERE token_hash IS NOT NULL;

CREATE TABLE cluster (
    brain integer NOT NULL REFERENCES brain,
    id integer GENERATED ALWAYS AS IDENTITY,
    run integer NOT NULL,
    state text NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'created', 'strengthened', 'tombstoned', 'nothing')),
    corrections integer NOT NULL DEFAULT 0,
    packets integer NOT NULL CHECK (packets > 0),
    cohesion real NOT NULL,                      -- mean cosine similarity to its centroid
    attempts integer NOT NULL DEFAULT 0,
    error text NOT NULL DEFAULT '',              -- of the last attempt
    lesson integer,
    decided_by text,
    decided_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (brain, id),
    FOREIGN KEY (brain, run) REFERENCES synthesis_run (brain, id)
);
CREATE INDEX cluster_waiting ON cluster (brain, id) WHERE state = 'waiting';

CREATE TABLE cluster_packet (
    brain integer NOT NULL,
    cluster integer NOT NULL,
    packet integer NOT NULL,
    PRIMARY KEY (brain, cluster, packet),
    FOREIGN KEY (brain, cluster) REFERENCES cluster (brain, id),
    FOREIGN KEY (brain, packet) REFERENCES packet (brain, id)
);

CREATE TABLE lesson (
    brain integer NOT NULL REFERENCES brain,
    id integer GENERATED ALWAYS AS IDENTITY,
    text text NOT NULL CHECK (text <> ''),
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,                    -- "model ollama/…", "caller …", or the human
    run integer,
    expires_at timestamptz NOT NULL,             -- renewed only by being retrieved
    last_used_at timestamptz,
    uses integer NOT NULL DEFAULT 0,
    reinforced integer NOT NULL DEFAULT 1,       -- times it was learned
    pinned boolean NOT NULL DEFAULT false,       -- does not expire
    edited_at timestamptz,
    deleted_at timestamptz,                      -- a tombstone: its like is not written again
    deleted_by text,
    reason text NOT NULL DEFAULT '',
    PRIMARY KEY (brain, id),
    FOREIGN KEY (brain, run) REFERENCES synthesis_run (brain, id)
);
CREATE UNIQUE INDEX lesson_id ON lesson (id);
CREATE INDEX lesson_newest ON lesson (created_at DESC, id DESC);

CREATE TABLE lesson_source (
    brain integer NOT NULL,
    lesson integer NOT NULL,
    packet integer NOT NULL,
    PRIMARY KEY (brain, lesson, packet),
    FOREIGN KEY (brain, lesson) REFERENCES lesson (brain, id),
    FOREIGN KEY (brain, packet) REFERENCES packet (brain, id)
);

CREATE TABLE lesson_embedding (
    model smallint NOT NULL REFERENCES model ON DELETE CASCADE,
    brain integer NOT NULL,
    lesson integer NOT NULL,
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'embedded', 'failed')),
    error text,
    vector halfvec,
    PRIMARY KEY (model, brain, lesson),
    FOREIGN KEY (brain, lesson) REFERENCES lesson (brain, id),
    CHECK ((state = 'embedded') = (vector IS NOT NULL))
);
CREATE INDEX lesson_embedding_backlog ON lesson_embedding (model) WHERE state = 'pending';

-- What was done to lessons and cores, by whom and when. Only ever added to.
CREATE TABLE memory_audit (
    brain integer NOT NULL REFERENCES brain,
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor text NOT NULL,
    action text NOT NULL,
    lesson integer,
    before jsonb,
    after jsonb,
    reason text NOT NULL DEFAULT '',
    PRIMARY KEY (brain, id)
);
CREATE INDEX memory_audit_lesson ON memory_audit (brain, lesson, id);

-- When the person was last in a pane: what is newer is marked as new. Of no brain.
CREATE TABLE visit (
    pane text PRIMARY KEY,
    at timestamptz NOT NULL
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is only ever added to', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
DO $$
DECLARE
    kept text;
BEGIN
    FOREACH kept IN ARRAY ARRAY['entry', 'memory_audit'] LOOP
        EXECUTE format('CREATE TRIGGER only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON %I'
            ' FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', kept);
    END LOOP;
END $$;

-- ---------------------------------------------------------------------------------------------------------
-- Row-level security. Owners pass it; the engine's role owns nothing.

ALTER TABLE core ENABLE ROW LEVEL SECURITY;
CREATE POLICY scope_read ON core FOR SELECT
    USING ((SELECT scope_all()) OR account = (SELECT scope_account()));
ALTER TABLE brain ENABLE ROW LEVEL SECURITY;
CREATE POLICY scope_read ON brain FOR SELECT USING ((SELECT scope_all()) OR id = (SELECT scope_brain()));

DO $$
DECLARE
    scoped text;
BEGIN
    FOREACH scoped IN ARRAY ARRAY['channel', 'entry', 'packet', 'packet_posting', 'packet_embedding', 'attribute',
        'turn_token', 'synthesis_run', 'cluster', 'cluster_packet', 'lesson', 'lesson_source',
        'lesson_embedding', 'memory_audit'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', scoped);
        EXECUTE format('CREATE POLICY scope_read ON %I FOR SELECT'
            ' USING (brain = (SELECT scope_brain()) OR (SELECT scope_all()))', scoped);
        EXECUTE format('CREATE POLICY scope_insert ON %I FOR INSERT'
            ' WITH CHECK (brain = (SELECT scope_brain()))', scoped);
        EXECUTE format('CREATE POLICY scope_update ON %I FOR UPDATE'
            ' USING (brain = (SELECT scope_brain())) WITH CHECK (brain = (SELECT scope_brain()))', scoped);
        EXECUTE format('CREATE POLICY scope_delete ON %I FOR DELETE'
            ' USING (brain = (SELECT scope_brain()))', scoped);
    END LOOP;
    -- Vectors are a projection: the background work that makes them goes through all brains.
    FOREACH scoped IN ARRAY ARRAY['packet_embedding', 'lesson_embedding'] LOOP
        EXECUTE format('CREATE POLICY upkeep ON %I FOR UPDATE'
            ' USING ((SELECT scope_all())) WITH CHECK ((SELECT scope_all()))', scoped);
    END LOOP;
END $$;

-- Queues what has no vector of a model yet, in every brain.
CREATE FUNCTION fill_memory_embeddings(of_model smallint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = noctuary, public, pg_temp AS $$
DECLARE
    packets bigint;
    lessons bigint;
BEGIN
    INSERT INTO packet_embedding (model, brain, packet) SELECT of_model, packet.brain, packet.id FROM packet
        WHERE NOT EXISTS (SELECT FROM packet_embedding known WHERE known.model = of_model
            AND known.brain = packet.brain AND known.packet = packet.id)
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS packets = ROW_COUNT;
    INSERT INTO lesson_embedding (model, brain, lesson) SELECT of_model, lesson.brain, lesson.id FROM lesson
        WHERE NOT EXISTS (SELECT FROM lesson_embedding known WHERE known.model = of_model
            AND known.brain = lesson.brain AND known.lesson = lesson.id)
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS lessons = ROW_COUNT;
    RETURN packets + lessons;
END $$;
REVOKE ALL ON FUNCTION fill_memory_embeddings FROM PUBLIC;

-- The planner's view of tables that were just filled, as `refresh_statistics` for the notes.
CREATE FUNCTION refresh_memory_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = noctuary, public, pg_temp AS $$
BEGIN
    ANALYZE core, brain, channel, packet, lesson, cluster, packet_posting (brain, term, packet),
        packet_embedding (model, brain, packet, state), entry (brain, id, channel, author, at);
END $$;
REVOKE ALL ON FUNCTION refresh_memory_statistics FROM PUBLIC;

DO $$
DECLARE
    watched text;
BEGIN
    FOREACH watched IN ARRAY ARRAY['core', 'packet', 'packet_embedding', 'cluster', 'synthesis_run', 'lesson'] LOOP
        EXECUTE format('CREATE TRIGGER notify_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed'
            ' FOR EACH STATEMENT EXECUTE FUNCTION notify_change()', watched);
        EXECUTE format('CREATE TRIGGER notify_update AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed'
            ' FOR EACH STATEMENT EXECUTE FUNCTION notify_change()', watched);
    END LOOP;
END $$;

GRANT SELECT ON core, brain TO noctuary_engine;
GRANT SELECT, INSERT ON channel, entry, memory_audit, lesson_source, cluster_packet TO noctuary_engine;
GRANT SELECT, INSERT, UPDATE ON packet, packet_embedding, lesson, lesson_embedding, synthesis_run, cluster
    TO noctuary_engine;
GRANT SELECT, INSERT, UPDATE, DELETE ON attribute, turn_token, visit TO noctuary_engine;
GRANT SELECT, INSERT ON packet_posting TO noctuary_engine;
GRANT EXECUTE ON FUNCTION enter_brain, add_core, fill_memory_embeddings, refresh_memory_statistics
    TO noctuary_engine;

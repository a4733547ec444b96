-- Several embedding models: who runs each, which has read everything, and which one was chosen for this index.

ALTER TABLE model
    ADD COLUMN provider text NOT NULL DEFAULT 'bundled',
    -- As EMBEDDINGS_MODEL names it; `name` tells its version and arithmetic apart as well.
    ADD COLUMN model text NOT NULL DEFAULT 'all-MiniLM-L6-v2',
    -- When every passage had its vector of this model for the first time. From then on it may answer
    -- searches; until then the last one that did answers, so that a change of model is never seen.
    ADD COLUMN complete_at timestamptz,
    -- Its default distance, where that had to be measured.
    ADD COLUMN distance double precision;
ALTER TABLE model ALTER COLUMN provider DROP DEFAULT, ALTER COLUMN model DROP DEFAULT;
CREATE INDEX model_known ON model (provider, model, id DESC);

UPDATE model SET complete_at = now() WHERE NOT EXISTS (
    SELECT FROM embedding JOIN passage ON passage.id = embedding.passage
    WHERE embedding.model = model.id AND embedding.state = 'pending' AND passage.orphaned_at IS NULL);

-- The choice belongs to the index, not to a machine: every process on it takes the same model, unless its
-- settings name another.
CREATE TABLE chosen_model (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    provider text NOT NULL,
    model text NOT NULL,
    chosen_at timestamptz NOT NULL DEFAULT now()
);

DROP FUNCTION register_model(text, integer);
CREATE FUNCTION register_model(model_name text, model_dimension integer, run_by text, model_model text)
RETURNS smallint
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
    INSERT INTO model (name, dimension, provider, model)
        VALUES (model_name, model_dimension, run_by, model_model) RETURNING * INTO known;
    EXECUTE format(
        'CREATE INDEX %I ON embedding USING hnsw ((vector::halfvec(%s)) halfvec_cosine_ops)'
        ' WITH (m = 16, ef_construction = 64) WHERE model = %s AND state = ''embedded''',
        'embedding_vector_' || known.id, known.dimension, known.id);
    RETURN known.id;
END $$;
REVOKE ALL ON FUNCTION register_model FROM PUBLIC;

-- A model that is not wanted any more goes with its vectors and their index.
CREATE FUNCTION forget_model(unwanted smallint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = noctuary, public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('noctuary:model', 0));
    EXECUTE format('DROP INDEX IF EXISTS %I', 'embedding_vector_' || unwanted);
    DELETE FROM embedding WHERE model = unwanted;
    DELETE FROM model WHERE id = unwanted;
END $$;
REVOKE ALL ON FUNCTION forget_model FROM PUBLIC;

DO $$
DECLARE
    watched text;
BEGIN
    FOREACH watched IN ARRAY ARRAY['model', 'chosen_model'] LOOP
        EXECUTE format('CREATE TRIGGER notify_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed'
            ' FOR EACH STATEMENT EXECUTE FUNCTION notify_change()', watched);
        EXECUTE format('CREATE TRIGGER notify_update AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed'
            ' FOR EACH STATEMENT EXECUTE FUNCTION notify_change()', watched);
        EXECUTE format('CREATE TRIGGER notify_delete AFTER DELETE ON %I REFERENCING OLD TABLE AS changed'
            ' FOR EACH STATEMENT EXECUTE FUNCTION notify_change()', watched);
    END LOOP;
END $$;

GRANT UPDATE (complete_at, distance) ON model TO noctuary_engine;
GRANT SELECT, INSERT, UPDATE, DELETE ON chosen_model TO noctuary_engine;
GRANT EXECUTE ON FUNCTION register_model, forget_model TO noctuary_engine;

-- What was asked and what it cost: traces, the ledger of tokens, and the runs of eval.

-- One row a search or ask. The question is the user's own text; no text of a note is ever kept here.
CREATE TABLE trace (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    kind text NOT NULL CHECK (kind IN ('search', 'ask')),
    door text NOT NULL,                       -- the program that asked: "noctuary", "noctuary serve", …
    query text NOT NULL,
    citations integer NOT NULL CHECK (citations >= 0),
    seconds double precision NOT NULL,
    answered boolean NOT NULL,                -- of a search: something was found; of an ask: there is an answer
    prompt_version text,                      -- of an ask that called a model
    provider text,
    model text,
    prompt_tokens integer,
    completion_tokens integer,
    trouble text NOT NULL DEFAULT ''          -- why there is no answer, where the model failed
);

-- What language models were asked to read and write, call by call.
CREATE TABLE language_use (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    purpose text NOT NULL,                    -- ask, write, distil, …
    provider text NOT NULL,
    model text NOT NULL,
    prompt_tokens integer NOT NULL CHECK (prompt_tokens >= 0),
    completion_tokens integer NOT NULL CHECK (completion_tokens >= 0),
    estimated boolean NOT NULL DEFAULT false, -- counted by us, where the provider did not tell or was cut off
    failed boolean NOT NULL DEFAULT false     -- it broke off, or what came was of no use
);
CREATE INDEX language_use_at ON language_use (at);

CREATE TABLE eval_run (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    dataset text NOT NULL,                    -- the file it was read from
    dataset_hash bytea NOT NULL CHECK (octet_length(dataset_hash) = 32),
    model text NOT NULL,                      -- the embedding model that answered
    k integer NOT NULL,
    total integer NOT NULL CHECK (total > 0),
    correct integer NOT NULL CHECK (correct BETWEEN 0 AND total),
    recall double precision,                  -- recall@k and MRR: null where no question wants a place
    mrr double precision,
    seconds double precision NOT NULL
);
CREATE INDEX eval_run_dataset ON eval_run (dataset, id DESC);

CREATE TABLE eval_answer (
    run bigint NOT NULL REFERENCES eval_run ON DELETE CASCADE,
    position integer NOT NULL,
    question_id text NOT NULL,
    question text NOT NULL,
    expected text NOT NULL,                   -- where the answer stands, in words
    correct boolean NOT NULL,
    rank integer,                             -- of the first citation that was wanted
    cited text[] NOT NULL,                    -- path:Lstart-Lend, best first
    PRIMARY KEY (run, position)
);

DO $$
DECLARE
    watched text;
BEGIN
    FOREACH watched IN ARRAY ARRAY['trace', 'language_use', 'eval_run'] LOOP
        EXECUTE format('CREATE TRIGGER notify_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed'
            ' FOR EACH STATEMENT EXECUTE FUNCTION notify_change()', watched);
    END LOOP;
END $$;

-- The ledger is only ever added to. Old traces and runs of eval are tidied away.
GRANT SELECT, INSERT ON language_use TO noctuary_engine;
GRANT SELECT, INSERT, DELETE ON trace, eval_run, eval_answer TO noctuary_engine;

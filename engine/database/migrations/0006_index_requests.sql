-- What was asked to be indexed through a door that does not wait for it: the jobs that were open then.

CREATE TABLE index_request (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    jobs bigint[] NOT NULL
);
CREATE INDEX index_request_at ON index_request (at);

GRANT SELECT, INSERT, DELETE ON index_request TO noctuary_engine;

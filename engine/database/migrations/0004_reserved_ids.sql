-- Workers reserve the ids of new passages and of the segment they are posted in, so that the rows are made
-- before the writers' lock is taken, and not while everybody waits for it. A thousand at a time, and one by one
-- they would take longer than to be looked for.
GRANT USAGE ON SEQUENCE passage_id_seq, segment_id_seq TO noctuary_engine;
ALTER SEQUENCE passage_id_seq CACHE 128;

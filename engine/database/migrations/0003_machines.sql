-- A folder belongs to the machine whose disk it is on: on a shared database another machine may have a
-- folder of the same path, with other notes in it or none.
ALTER TABLE folder
    ADD COLUMN machine text,   -- null: added before machines were told apart
    ADD COLUMN host text;      -- its name, for humans

-- Which store this is. `format` is the number of the last migration; `min_reader` the oldest format whose readers understand it.
-- `role`: an `origin` is written by the service; a `copy` and a `backup` are not.
CREATE TABLE store (
    only       INTEGER PRIMARY KEY CHECK (only = 1),
    id         TEXT    NOT NULL,
    format     INTEGER NOT NULL,
    min_reader INTEGER NOT NULL,
    role       TEXT    NOT NULL CHECK (role IN ('origin', 'copy', 'backup'))
) STRICT;

-- The ledger. Revisions are gapless from 1; hashes and ids are hexadecimal, times are milliseconds since 1970.
CREATE TABLE commits (
    revision      INTEGER PRIMARY KEY,
    hash          TEXT    NOT NULL,
    previous      TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    commit_id     TEXT    NOT NULL UNIQUE,
    time          INTEGER NOT NULL,
    actor         TEXT    NOT NULL,
    reason        TEXT,
    request       TEXT,
    -- The version of the program that decided about it.
    version       TEXT    NOT NULL,
    -- Reserved: which request it was, for one that is sent twice; how often another history was declared to be the right one.
    idempotency_key     TEXT,
    idempotency_request TEXT,
    epoch         INTEGER NOT NULL,
    decommissions INTEGER NOT NULL,
    each          INTEGER NOT NULL,
    ordinary      INTEGER NOT NULL,
    confirmed     INTEGER NOT NULL,
    -- How many changes there are, their digest, which the hash covers, and how large their bodies are together, so that a budget is
    -- kept without reading them.
    changes       INTEGER NOT NULL,
    changes_hash  TEXT    NOT NULL,
    bytes         INTEGER NOT NULL
) STRICT;

CREATE INDEX commits_by_actor ON commits (actor, revision);
CREATE INDEX commits_by_time ON commits (time, revision);

-- What each commit changed: a body, or NULL for an entry that is gone. `space` is a kind, or one of the service's own spaces, which
-- begin with `@`. A table with row ids: in one without, a body of two kilobytes would spill into a page of its own.
CREATE TABLE changes (
    revision INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    space    TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    uid      TEXT    NOT NULL,
    body     TEXT,
    digest   TEXT    NOT NULL,
    PRIMARY KEY (revision, seq)
) STRICT;

-- The id first: with a space it finds one entry, without one all entries of that id.
CREATE INDEX changes_by_entry ON changes (id, space, revision);

-- The entries at the head, so that a start does not replay history.
CREATE TABLE entries (
    space    TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    body     TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    uid      TEXT    NOT NULL,
    PRIMARY KEY (space, id)
) STRICT;

"""The tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

# Payloads have a table of their own: the rows that reports group, count and search stay short, so a
# report over 100,000 stalls reads 30 MB instead of 400.
_ISSUES = (
    """CREATE TABLE issues (
        row INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        cause TEXT NOT NULL,
        began_wall_ns INTEGER NOT NULL,
        duration_ns INTEGER NOT NULL,
        search TEXT NOT NULL,
        thread TEXT NOT NULL,
        loop TEXT NOT NULL,
        scene TEXT NOT NULL,
        in_app INTEGER
    )""",
)
# The index of groups has all that lists are filtered by, but for text: read off it alone, they read a fifth.
# Most issues are stalls, and most questions are about stalls alone or about all others.
_INDEXES = (
    "CREATE INDEX issues_stalls_by_time ON issues (began_wall_ns) WHERE kind = 'stall'",
    "CREATE INDEX issues_others_by_time ON issues (began_wall_ns) WHERE kind <> 'stall'",
    "CREATE INDEX issues_by_session ON issues (session)",
    "CREATE INDEX issues_by_duration ON issues (fingerprint, duration_ns, began_wall_ns, kind)",
    """CREATE INDEX issues_by_group ON issues
       (fingerprint, began_wall_ns, duration_ns, cause, scene, in_app, session, kind)""",
    "CREATE INDEX issues_by_scene ON issues (scene) WHERE scene <> ''",
    """CREATE TRIGGER payload_goes_with_issue AFTER DELETE ON issues
       BEGIN DELETE FROM payloads WHERE row = old.row; END""",
)
_OTHER_TABLES = (
    "CREATE TABLE payloads (row INTEGER PRIMARY KEY, payload TEXT NOT NULL)",
    """CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        started_wall_ns INTEGER NOT NULL,
        ended_wall_ns INTEGER,
        end TEXT NOT NULL,
        payload TEXT NOT NULL,
        name TEXT NOT NULL,
        version TEXT NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX sessions_by_time ON sessions (started_wall_ns)",
    # A session's figures of frames, input and idle work while it runs; at its end they are in its payload.
    """CREATE TABLE traces (
        session TEXT PRIMARY KEY,
        stored_wall_ns INTEGER NOT NULL,
        payload TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TRIGGER traces_go_with_session AFTER DELETE ON sessions
       BEGIN DELETE FROM traces WHERE session = old.id; END""",
    """CREATE TABLE remarks (
        fingerprint TEXT PRIMARY KEY,
        ignored INTEGER NOT NULL,
        note TEXT NOT NULL,
        changed_wall_ns INTEGER NOT NULL
    ) WITHOUT ROWID""",
)

VERSION = 6
"""Of this layout; 0 is an empty file. Others were never released."""
_TABLES = (*_ISSUES, *_INDEXES, *_OTHER_TABLES)

# Live stalls and sessions lie over the stored ones in temporary tables of this connection alone, and cover
# those of the same ids; what cannot be read is covered, too. The temporary views take the names of the tables
# they cover (SQLite looks in `temp` first), so every reading statement sees both; writing statements say
# `main.`. What is covered is told by row, which every index has: by id, a count would read the whole table.
OVERLAY = (
    "CREATE TEMP TABLE live_sessions AS SELECT * FROM main.sessions LIMIT 0",
    "CREATE TEMP TABLE live_issues AS SELECT * FROM main.issues LIMIT 0",
    "CREATE TEMP TABLE live_payloads AS SELECT * FROM main.payloads LIMIT 0",
    "CREATE TEMP TABLE covered (id TEXT PRIMARY KEY)",
    """CREATE TEMP VIEW sessions AS
       SELECT * FROM main.sessions WHERE id NOT IN (SELECT id FROM temp.covered)
       UNION ALL SELECT * FROM temp.live_sessions""",
)

# Used only while a stall is not over, or an issue cannot be read: sums over a view read every row, and not
# only an index.
ISSUES_OVERLAY = (
    """CREATE TEMP VIEW issues AS
       SELECT * FROM main.issues WHERE row NOT IN (
           SELECT stored.row FROM main.issues AS stored WHERE stored.id IN (SELECT id FROM temp.covered))
       UNION ALL SELECT * FROM temp.live_issues""",
    "CREATE TEMP VIEW payloads AS SELECT * FROM main.payloads UNION ALL SELECT * FROM temp.live_payloads",
)
NO_ISSUES_OVERLAY = ("DROP VIEW IF EXISTS temp.issues", "DROP VIEW IF EXISTS temp.payloads")


_TRIGGERS = {" ".join(one.split()) for one in _TABLES if one.startswith("CREATE TRIGGER")}


def is_ours(connection: sqlite3.Connection) -> bool:
    """Whether the database has tables, indexes and our triggers only: what is read of a view or of a virtual
    table is run first, and may have no end."""
    import re  # only for root

    for (text,) in connection.execute("SELECT sql FROM main.sqlite_master WHERE sql IS NOT NULL"):
        plain = " ".join(str(text).split())
        is_table = plain.startswith("CREATE TABLE ") and not re.search(r"\bAS\b", plain, re.IGNORECASE)
        if not (is_table or plain in _TRIGGERS or re.match("CREATE (UNIQUE )?INDEX ", plain)):
            return False
    return True


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def create(connection: sqlite3.Connection) -> None:
    """Makes the tables in an empty file, in one transaction: a crash leaves it as it was."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in () if version_of(connection) else _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise

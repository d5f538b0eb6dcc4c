"""The tables, and how an older database becomes a newer one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

# Payloads have a table of their own: the rows that reports group, count and search stay short, so a
# report over 100,000 stalls reads 30 MB instead of 400.
_VERSION_1 = (
    """CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        started_wall_ns INTEGER NOT NULL,
        ended_wall_ns INTEGER,
        end TEXT NOT NULL,
        payload TEXT NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX sessions_by_time ON sessions (started_wall_ns)",
    """CREATE TABLE stalls (
        row INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        cause TEXT NOT NULL,
        began_wall_ns INTEGER NOT NULL,
        duration_ns INTEGER NOT NULL,
        search TEXT NOT NULL
    )""",
    "CREATE INDEX stalls_by_time ON stalls (began_wall_ns)",
    "CREATE INDEX stalls_by_session ON stalls (session)",
    "CREATE INDEX stalls_by_duration ON stalls (fingerprint, duration_ns, began_wall_ns)",
    "CREATE INDEX stalls_by_group ON stalls (fingerprint, began_wall_ns)",
    "CREATE TABLE payloads (row INTEGER PRIMARY KEY, payload TEXT NOT NULL)",
    """CREATE TRIGGER payload_goes_with_stall AFTER DELETE ON stalls
       BEGIN DELETE FROM payloads WHERE row = old.row; END""",
)

# On which loop a stall was, and which program and version a session: rates and comparisons are by these.
# Stalls and sessions of a version 1 have '' there.
_VERSION_2 = (
    "ALTER TABLE stalls ADD COLUMN thread TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE stalls ADD COLUMN loop TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sessions ADD COLUMN name TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sessions ADD COLUMN version TEXT NOT NULL DEFAULT ''",
)

# Issues of other kinds, and what a session's frames, input and idle work tell while it runs; at its end they
# are in its payload as well.
_VERSION_3 = (
    """CREATE TABLE issues (
        row INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        kind TEXT NOT NULL,
        cause TEXT NOT NULL,
        began_wall_ns INTEGER NOT NULL,
        duration_ns INTEGER NOT NULL,
        search TEXT NOT NULL,
        payload TEXT NOT NULL
    )""",
    "CREATE INDEX issues_by_time ON issues (began_wall_ns)",
    "CREATE INDEX issues_by_session ON issues (session)",
    """CREATE TABLE traces (
        session TEXT PRIMARY KEY,
        stored_wall_ns INTEGER NOT NULL,
        payload TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TRIGGER traces_go_with_session AFTER DELETE ON sessions
       BEGIN DELETE FROM traces WHERE session = old.id; END""",
)

# What people filter by and say of a bug. Stalls of a version 3 have '' and NULL (unknown) there. The index
# gets the duration, so that a bug's course over time is read off it alone.
_VERSION_4 = (
    "DROP INDEX stalls_by_group",
    "CREATE INDEX stalls_by_group ON stalls (fingerprint, began_wall_ns, duration_ns)",
    "ALTER TABLE stalls ADD COLUMN scene TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE stalls ADD COLUMN in_app INTEGER",
    "CREATE INDEX stalls_by_scene ON stalls (scene) WHERE scene <> ''",
    """CREATE TABLE remarks (
        fingerprint TEXT PRIMARY KEY,
        ignored INTEGER NOT NULL,
        note TEXT NOT NULL,
        changed_wall_ns INTEGER NOT NULL
    ) WITHOUT ROWID""",
)

# The index has all that lists are filtered by, but for text: read off it alone, they read a fifth.
_VERSION_5 = (
    "DROP INDEX stalls_by_group",
    """CREATE INDEX stalls_by_group ON stalls
       (fingerprint, began_wall_ns, duration_ns, cause, scene, in_app, session)""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5)
"""MIGRATIONS[i] brings a database of version i to i + 1; version 0 is an empty file. Never edit one that
was released: append."""

VERSION = len(MIGRATIONS)

_LACKING = {2: "programs and versions", 3: "issues that are no stalls", 4: "scenes, notes and own code"}
"""What came with a version, for people."""

# Live stalls and sessions lie over the stored ones in temporary tables of this connection alone. The
# temporary views take the names of the tables they cover (SQLite looks in `temp` first), so every reading
# statement sees both; writing statements say `main.`. What is covered is told by row, which every index
# has: by id, a count would read the whole table.
OVERLAY = (
    "CREATE TEMP TABLE live_sessions AS SELECT * FROM main.sessions LIMIT 0",
    "CREATE TEMP TABLE live_stalls AS SELECT * FROM main.stalls LIMIT 0",
    "CREATE TEMP TABLE live_payloads AS SELECT * FROM main.payloads LIMIT 0",
    """CREATE TEMP VIEW sessions AS
       SELECT * FROM main.sessions WHERE id NOT IN (SELECT id FROM temp.live_sessions)
       UNION ALL SELECT * FROM temp.live_sessions""",
)

# Only while a stall goes on: over a view, sums read every row, and not an index alone.
STALLS_OVERLAY = (
    """CREATE TEMP VIEW stalls AS
       SELECT * FROM main.stalls WHERE row NOT IN (
           SELECT covered.row FROM main.stalls AS covered
           WHERE covered.id IN (SELECT id FROM temp.live_stalls))
       UNION ALL SELECT * FROM temp.live_stalls""",
    "CREATE TEMP VIEW payloads AS SELECT * FROM main.payloads UNION ALL SELECT * FROM temp.live_payloads",
)
NO_STALLS_OVERLAY = ("DROP VIEW IF EXISTS temp.stalls", "DROP VIEW IF EXISTS temp.payloads")


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version that the database says it has."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def lacking(version: int) -> str:
    """What a database of an older version does not tell, for people."""
    words = [what for came, what in _LACKING.items() if came > version] or ["its faster lists"]
    return ", ".join(words)


def cover_older(connection: sqlite3.Connection) -> None:
    """Makes an older database that may not be changed look like one of VERSION to reading statements.

    What it lacks is empty, or has its default: temporary tables and views of this connection take the names
    of those they cover, as in OVERLAY. Statements that say `main.` see what is there.
    """
    import sqlite3

    model = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(model)
        tables = model.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        for table, statement in tables:
            wanted = model.execute(f"PRAGMA table_info({table})").fetchall()
            there = {row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")}
            if not there:
                connection.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
            elif any(name not in there for _, name, *_ in wanted):
                columns = ", ".join(
                    name if name in there else f"{default or 'NULL'} AS {name}"
                    for _, name, _, _, default, _ in wanted
                )
                connection.execute(f"CREATE TEMP VIEW {table} AS SELECT {columns} FROM main.{table}")  # noqa: S608
    finally:
        model.close()


def migrate(connection: sqlite3.Connection) -> None:
    """Brings the database to VERSION, all steps in one transaction: a crash leaves the old version."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statements in MIGRATIONS[version_of(connection) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise

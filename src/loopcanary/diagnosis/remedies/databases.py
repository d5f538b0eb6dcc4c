"""Remedies for databases and caches. Data."""

from __future__ import annotations

from loopcanary.diagnosis.remedies.kinds import WAITING, Remedy, Way
from loopcanary.model import Cause

_LOCAL = frozenset({Cause.DISK_IO, Cause.LOCK, Cause.SLEEP, Cause.NATIVE_CPU})

REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        modules=("sqlalchemy", "sqlmodel", "flask_sqlalchemy"),
        names=("session.commit", "session.query", "session.scalars"),
        way=Way.THREAD,
        asyncio="Use `create_async_engine` and `AsyncSession` of sqlalchemy.ext.asyncio.",
    ),
    Remedy(
        modules=("django.db",),
        way=Way.THREAD,
        asyncio="Use the ORM's async methods (`aget`, `acreate`), or `sync_to_async`.",
    ),
    Remedy(
        modules=("peewee", "pony", "mongoengine"),
        way=Way.THREAD,
        asyncio="Run the query with `await asyncio.to_thread(...)`, or use an ORM made for asyncio "
        "(SQLAlchemy, "
        "Tortoise, Beanie).",
    ),
    Remedy(
        modules=("redis",),
        names=("redis.get", "redis.set", "r.get", "r.set"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use `redis.asyncio.Redis`: it has the same methods, awaited.",
    ),
    Remedy(
        modules=("pymemcache", "memcache", "bmemcached"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use aiomcache, or run the call with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("pymysql", "MySQLdb", "mysql"),
        names=("pymysql.connect", "MySQLdb.connect", "mysql.connector.connect"),
        way=Way.CLIENT,
        asyncio="Use asyncmy or aiomysql, or run the query with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("psycopg2",),
        names=("psycopg2.connect",),
        way=Way.CLIENT,
        asyncio="Use `psycopg.AsyncConnection` or asyncpg, or `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("psycopg", "psycopg_pool"),
        names=("psycopg.connect", "psycopg.Connection.connect"),
        way=Way.CLIENT,
        asyncio="Use `psycopg.AsyncConnection` and `AsyncConnectionPool`: the same methods, awaited.",
    ),
    Remedy(
        modules=("pg8000", "pymssql", "pyodbc", "oracledb", "cx_Oracle", "snowflake", "clickhouse_driver"),
        names=("pyodbc.connect", "pymssql.connect", "oracledb.connect", "cx_Oracle.connect"),
        way=Way.CLIENT,
        asyncio="Use the driver's async side (`oracledb.connect_async`, aioodbc), or `await "
        "asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("pymongo", "gridfs"),
        names=("collection.find_one", "collection.insert_one", "collection.update_one"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use `pymongo.AsyncMongoClient`: it has the same methods, awaited.",
    ),
    Remedy(
        modules=("cassandra", "neo4j", "influxdb", "influxdb_client"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use the driver's async session, or run the query with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        names=("sqlite3.connect", "*.execute", "*.executemany", "*.executescript", "*.commit", "*.fetchall"),
        modules=("sqlite3", "sqlite_utils"),
        causes=_LOCAL,
        way=Way.THREAD,
        asyncio="Use aiosqlite, or run the query with `await asyncio.to_thread(...)`; WAL and a busy "
        "timeout keep "
        "writers from waiting long.",
    ),
    Remedy(
        names=("*.execute", "*.executemany", "*.fetchall", "*.fetchone", "*.fetchmany", "*.commit"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use the database's asyncio driver (asyncpg, psycopg's AsyncConnection, asyncmy), or "
        "`await asyncio.to_thread(...)`.",
    ),
    Remedy(
        names=("duckdb.sql", "duckdb.query", "duckdb.connect", "con.sql"),
        way=Way.THREAD,
        asyncio="Run the query with `await asyncio.to_thread(...)` on a cursor of its own: DuckDB releases "
        "the GIL.",
    ),
    Remedy(
        modules=("dbm", "shelve", "lmdb", "plyvel", "diskcache"),
        names=("shelve.open", "dbm.open"),
        way=Way.THREAD,
        asyncio="Run the access with `await asyncio.to_thread(...)`: it reads and writes files.",
    ),
)

"""One SQLite file and its connection: opened, prepared, mended, set aside."""

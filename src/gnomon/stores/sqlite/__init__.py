"""SQLite through apsw, and nothing else opens the file."""

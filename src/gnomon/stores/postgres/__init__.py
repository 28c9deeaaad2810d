"""PostgreSQL through asyncpg, driven directly."""

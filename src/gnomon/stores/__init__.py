"""The database: one store per noun, one method per named query. Knows no service."""

"""HTTP under /v1: one module per noun; status codes in problems.py alone."""

"""The schema of the log and its history, for Alembic. `schema.py` runs them."""

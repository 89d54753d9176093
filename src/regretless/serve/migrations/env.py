"""Alembic's entry point: runs the migrations on the connection that `schema.py` passes."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()

"""Schema versions of a log: creates the tables of a new one, migrates an older one, refuses a newer one."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

HEAD = "0002"  # the newest revision in migrations/versions


def version_of(connection: sa.Connection) -> str | None:
    """The schema version of the log; None for an empty database. A newer version is refused."""
    if not sa.inspect(connection).has_table("alembic_version"):
        if sa.inspect(connection).has_table("events"):
            raise ValueError("the database has a table 'events' that is not a log of regretless: choose another one.")
        return None
    found: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if found is None and sa.inspect(connection).has_table("events"):
        raise ValueError("the log is damaged: it has events, and no schema version.")
    if found is not None and found > HEAD:
        raise ValueError(
            f"the log has schema version {found}, and this regretless knows versions up to {HEAD}: use a newer release."
        )
    return found


def migrate(connection: sa.Connection) -> None:
    """Bring the log to the newest schema."""
    found = version_of(connection)
    if found == HEAD:
        return
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN")  # sqlite3 begins no transaction for new tables: a crash would leave some
    command.upgrade(config, "head")
    connection.commit()


def require_head(connection: sa.Connection) -> None:
    """For readers, which migrate nothing."""
    found = version_of(connection)
    if found != HEAD:
        raise ValueError(
            f"the log has schema version {found}, not {HEAD}: start `regretless serve` on it once, which migrates it."
            if found
            else "there is no log in this database: `regretless serve --log URL` creates one."
        )

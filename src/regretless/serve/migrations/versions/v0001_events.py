"""Models and events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables of the first version."""
    op.create_table(
        "models",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("recipe", sa.Text, nullable=False),
        sa.Column("features", sa.Text, nullable=False),
        sa.Column("classes", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("start_seq", sa.BigInteger, nullable=False),
        sa.Column("start", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=False),
        sa.Column("model", sa.Integer, nullable=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("forecast", sa.LargeBinary),
        sa.Column("version", sa.BigInteger),
        sa.Column("weight", sa.Float),
    )
    op.create_index("event_of_id", "events", ["model", "id", "kind"], unique=True)


def downgrade() -> None:
    """Remove the tables."""
    op.drop_table("events")
    op.drop_table("models")

"""Labels that came before their forecasts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table of parked labels."""
    op.create_table(
        "parked",
        sa.Column("model", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("weight", sa.Float),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("parked")

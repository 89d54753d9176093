"""From probabilities of two classes to decisions: the threshold that costs least, given the costs of both errors."""

from __future__ import annotations

from typing import Any, NamedTuple


class Decision(NamedTuple):
    """Decide for the positive class if its probability is at least the threshold."""

    positive: int  # the place of the positive class among the two
    threshold: float = 0.5
    costs: tuple[float, float] | None = None  # of a false positive and of a false negative, if they were given


def decision_of(classes: Any, positive: str | None, costs: tuple[float, float] | None) -> Decision | None:
    """The decision between two classes; None for any other number of them.

    The positive class is by default the last one. With probabilities that can be trusted, the least cost is expected
    with the threshold fp / (fp + fn): it needs no tuning.

    >>> decision_of(["no", "yes"], None, (1.0, 19.0))
    Decision(positive=1, threshold=0.05, costs=(1.0, 19.0))
    """
    labels = [str(label) for label in classes]
    if positive is not None and positive not in labels:
        raise ValueError(f"--positive {positive}: the labels are {', '.join(labels[:20])}.")
    if len(labels) != 2:
        if positive is not None or costs is not None:
            raise ValueError(f"--positive and --cost need two classes, and there are {len(labels)}.")
        return None
    place = 1 if positive is None else labels.index(positive)
    return Decision(place) if costs is None else Decision(place, costs[0] / sum(costs), costs)


def costs_of(text: str) -> tuple[float, float]:
    """The costs of a false positive and of a false negative.

    >>> costs_of("fp=1,fn=20")
    (1.0, 20.0)
    """
    try:
        given = {name.strip(): float(value) for name, value in (part.split("=") for part in text.split(","))}
        found = given.pop("fp"), given.pop("fn")
    except (KeyError, ValueError):
        given, found = {"": 0.0}, (0.0, 0.0)
    if given or not (min(found) >= 0.0 and 0.0 < sum(found) < float("inf")):
        raise ValueError(f"--cost {text}: write the costs of a false positive and a false negative as fp=1,fn=20.")
    return found


def decided(table: Any, classes: Any, decision: Decision | None) -> Any:
    """A table of forecasts, in which the column `forecast` follows the decision."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if decision is None or decision.costs is None:
        return table
    labels = list(classes)
    positive, other = labels[decision.positive], labels[1 - decision.positive]
    at = table.schema.get_field_index("forecast")
    kind = table.schema.field(at).type
    is_positive = pc.fill_null(pc.greater_equal(table[f"p_{positive}"], decision.threshold), False)
    return table.set_column(at, "forecast", pc.if_else(is_positive, pa.scalar(positive, kind), pa.scalar(other, kind)))

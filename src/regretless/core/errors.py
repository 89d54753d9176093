"""The errors a user may want to catch. All are ValueErrors that say what to do."""


class BadRow(ValueError):
    """A row that cannot be learned from; nothing was learned."""


class NoCertificate(ValueError):
    """The chosen constants have no proof behind them, so there is no regret certificate."""


class NoBound(ValueError):
    """An assumption of the theorem does not hold, so its bound says nothing."""


class TooLarge(ValueError, MemoryError):
    """What is asked for does not fit into memory; nothing was changed."""

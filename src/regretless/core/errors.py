"""The exceptions of regretless. All are ValueErrors whose message says what to do."""


class BadRow(ValueError):
    """A row that cannot be learned from. Nothing was learned from the call."""


class NoCertificate(ValueError):
    """There is no regret certificate, because the chosen constants have no proof."""


class NoBound(ValueError):
    """There is no bound, because an assumption of the theorem does not hold."""


class TooLarge(ValueError, MemoryError):
    """The request does not fit into memory. Nothing was changed."""

"""Settings of the test run."""

from hypothesis import settings

settings.register_profile("noregret", deadline=None, derandomize=True, database=None)
settings.load_profile("noregret")

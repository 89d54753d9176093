"""Settings of the test run."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side: threads would wait for each other

from hypothesis import settings

settings.register_profile("noregret", deadline=None, derandomize=True, database=None)
settings.load_profile("noregret")

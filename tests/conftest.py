"""Settings of the test run."""

import os
import signal

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side: threads would wait for each other

from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: Ctrl-C could not be tested
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("regretless", deadline=None, derandomize=True, database=None)
settings.load_profile("regretless")

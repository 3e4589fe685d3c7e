"""What holds for every test run: Ctrl-C works in the tests and in what they start, and their Spark session has enough memory."""

import os
import signal

# A shell without job control starts background jobs with SIGINT ignored, and children inherit that; a CI runner may be one.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# One Spark session lives through all tests: what a thousand plans leave behind is more than a job ever holds.
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 2g pyspark-shell")

"""Makes Ctrl-C work in the tests and in what they start, also where the test run itself was started to ignore it."""

import signal

# A shell without job control starts background jobs with SIGINT ignored, and children inherit that; a CI runner may be one.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""The command ``kafka-audit``: each command reads its arguments, calls the other rooms and prints.

Nothing outside of this folder imports it.
"""

import gc

# By default Python looks for cycles after every 700 new objects, already while it imports. A snapshot makes millions that stay or that are
# in no cycle: a third of its CPU time.
gc.set_threshold(200_000)

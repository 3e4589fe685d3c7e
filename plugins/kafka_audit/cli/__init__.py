"""The command ``kafka-audit``: each command reads its arguments, calls the other rooms and prints.

Nothing outside of this folder imports it.
"""

import gc

from kafka_audit.cli.without_clients import put_clients_off

# By default Python looks for cycles after every 700 new objects, already while it imports. A snapshot makes millions that stay or that are
# in no cycle: a third of its CPU time.
gc.set_threshold(200_000)
put_clients_off("kafka")

"""What `kafka-audit lag` shows: where each group stands at this moment, in the columns of kafka-consumer-groups and some more."""

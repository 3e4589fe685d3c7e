"""The commit history: what ``__consumer_offsets`` and ``__transaction_state`` show of groups. ``read`` copies new records, ``decode`` makes
tables of them, ``describe`` sums the tables up for each group and each of its partitions."""

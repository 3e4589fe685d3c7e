"""The lag of groups: samples -> positions -> days and movement -> time, status, Burrow's rules and SLAs.

Each module reads what those before it give. Offsets are added, subtracted and compared only in ``positions`` (within a sample), ``steps``
(with the sample before) and ``movement`` (over the newest samples); kafka_audit.lag.position is the first of these without Spark.
``in_steps`` computes what several parts of one expression read.
"""

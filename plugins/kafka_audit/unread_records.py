"""The errors with which a group's first unread record hides its time."""

HIDES_ITS_TIME = ("CORRUPT_MESSAGE", "DEADLINE_EXCEEDED", "INVALID_RESPONSE", "RECORD_BATCH_TOO_LARGE", "UNSUPPORTED_COMPRESSION_TYPE")
"""``error`` of ``first_unread`` where the log may be read but not this record of it.

Whoever writes to the topic can bring that about. Timestamps need not rise with the offsets, so the record may be older than its offset
tells: without its time nothing says that an SLA in seconds is kept. A missing right of the auditor is another matter: the offsets that
brokers name for a time then still decide.
"""

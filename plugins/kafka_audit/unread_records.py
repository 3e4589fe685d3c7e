"""The errors for which the time of a group's first unread record is not known although the record exists."""

HIDES_ITS_TIME = ("CORRUPT_MESSAGE", "DEADLINE_EXCEEDED", "INVALID_RESPONSE", "RECORD_BATCH_TOO_LARGE", "UNSUPPORTED_COMPRESSION_TYPE")
"""Values of ``error`` in ``first_unread`` if the auditor may read the log, but this record cannot be read.

Anyone who writes to the topic can cause that. Timestamps need not rise with the offsets, so the record may be older than its offset
suggests: without its timestamp nothing proves that an SLA in seconds is kept. If the auditor has no right to read the log, that is
different: then the offsets that brokers return for a time still decide.
"""

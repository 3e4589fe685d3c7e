"""How a job runs in Spark and reads its evidence: session, tables, exit codes. Nothing here knows a control or a subject."""

"""Where groups stand at this moment, from one reading of a cluster, in plain Python: the twin of spark_jobs.lag without a history."""

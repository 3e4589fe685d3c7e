"""Where groups stand at this moment, from one reading of a cluster, without Spark: the twin of spark_jobs.lag without a history.

Nothing here reads a root folder, or imports Spark or a Kafka client.
"""

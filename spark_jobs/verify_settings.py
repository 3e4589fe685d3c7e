"""Judges topics, partitions, brokers and the cluster: settings, replicas and quorum."""

import sys

from kafka_audit.catalogue.rows import SETTINGS_JOB
from spark_jobs.verification import main

if __name__ == "__main__":
    sys.exit(main(SETTINGS_JOB, lambda audit: audit.settings))

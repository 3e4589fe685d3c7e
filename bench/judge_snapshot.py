"""One Spark application that judges one snapshot by every control: both jobs in one session. Prints its seconds as JSON."""

import json
import sys
import time

from kafka_audit.catalogue.rows import LAG_JOB, SETTINGS_JOB
from spark_jobs.session import spark_session
from spark_jobs.verification import main
from spark_jobs.verify_lag import write_tables


def judge(arguments: list[str]) -> int:
    seconds = {}
    started = time.monotonic()
    spark = spark_session("kafka_audit bench")
    seconds["session"] = time.monotonic() - started
    for job, target, extra in ((SETTINGS_JOB, "settings", None), (LAG_JOB, "lag", write_tables)):
        started = time.monotonic()
        code = main(job, lambda audit, name=target: audit.path / name, extra, arguments)
        seconds[job] = time.monotonic() - started
        if code:
            return code
    spark.stop()
    print(json.dumps(seconds))
    return 0


if __name__ == "__main__":
    sys.exit(judge(sys.argv[1:]))

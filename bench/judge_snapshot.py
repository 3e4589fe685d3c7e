"""A Spark application that judges one snapshot by every control, in one session, and prints the seconds as JSON."""

import json
import sys
import time

from spark_jobs.engine.session import spark_session
from spark_jobs.verify import main


def judge(arguments: list[str]) -> int:
    seconds = {}
    started = time.monotonic()
    spark = spark_session("kafka_audit bench")
    seconds["session"] = time.monotonic() - started
    started = time.monotonic()
    code = main(arguments)
    seconds["judging"] = time.monotonic() - started
    if code:
        return code
    spark.stop()
    print(json.dumps(seconds))
    return 0


if __name__ == "__main__":
    sys.exit(judge(sys.argv[1:]))

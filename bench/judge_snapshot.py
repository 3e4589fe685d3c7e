"""A Spark application that judges one snapshot by every control, settings then lag, in one session and prints the seconds as JSON."""

import json
import sys
import time

from spark_jobs.engine.session import spark_session
from spark_jobs.verify import PARTS, main


def judge(arguments: list[str]) -> int:
    seconds = {}
    started = time.monotonic()
    spark = spark_session("kafka_audit bench")
    seconds["session"] = time.monotonic() - started
    for part in PARTS:
        started = time.monotonic()
        code = main([*arguments, "--parts", part])
        seconds[part] = time.monotonic() - started
        if code:
            return code
    spark.stop()
    print(json.dumps(seconds))
    return 0


if __name__ == "__main__":
    sys.exit(judge(sys.argv[1:]))

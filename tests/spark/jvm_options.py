"""The options of a JVM that judges for many minutes, as that of the Spark tests does."""

from kafka_audit.submit import DRIVER_JAVA_OPTIONS

_QUICK, _THOROUGH = "-XX:TieredStopAtLevel=1", "-XX:TieredStopAtLevel=4"

LONG_LIVED = DRIVER_JAVA_OPTIONS.replace(_QUICK, _THOROUGH).replace("256m", "512m")
"""With the thorough compiler. It has cost what it saves after four CPU minutes, and then saves a third."""

assert _THOROUGH in LONG_LIVED and "512m" in LONG_LIVED

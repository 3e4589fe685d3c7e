"""Stands in the way of the package of this name, which jsonschema imports if it is there, and with jsonschema every process of Airflow's.

At its import it compiles 38 grammars, which takes three CPU seconds, to check that a text is an internationalised address. Nothing in an
Airflow of ours is checked for that. The bill of materials brings the package along.
"""

raise ImportError("rfc3987_syntax is not used in an Airflow of kafka-audit")

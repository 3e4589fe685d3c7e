"""Decodes raw records of the coordinators' topics into tables; the only folder of ``spark_jobs`` that imports kafka-python."""

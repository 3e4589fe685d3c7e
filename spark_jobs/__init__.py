"""The Spark jobs: ``verify`` judges a snapshot by the controls, ``read_commits`` reads the commit history, ``roll_up_offsets`` sums up lag
by day. Nothing here imports Airflow or Great Expectations; only ``commit_history.decode`` imports kafka-python, to decode messages."""

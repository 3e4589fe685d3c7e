"""The life of one audit: request, plan, steps, gates, outcome, kept inputs, the list of audits. Nothing here imports Airflow or Spark."""

"""Metrics in OpenMetrics text: their definitions, and the page of all clusters that Prometheus reads (``page.render_metrics``).

Figures come from sealed folders that were checked when they were read. What is not known has no sample: never 0.
"""

"""Wide rows of declared and listed topics, and their partitions."""

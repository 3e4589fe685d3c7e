"""The lag of groups over time: rows of every sample, rolled up by day, and what a window of them says."""

"""Wide rows of consumer groups, the partitions they read and their lag SLAs."""

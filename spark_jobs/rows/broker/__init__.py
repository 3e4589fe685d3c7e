"""Wide rows of brokers, and what all other rows take from their configuration."""

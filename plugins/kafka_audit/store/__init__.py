"""What seals, chains, signs, verifies and sweeps folders of evidence."""

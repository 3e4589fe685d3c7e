"""What seals, chains, signs and verifies folders of evidence."""

"""What a sealed audit keeps for those who look at many audits: small files, from which web pages, metrics and notifications are made."""

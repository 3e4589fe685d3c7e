"""One file per dataset of a snapshot: its name, its schema and how it is read."""

"""Lets ``python -m kafka_audit.cli`` run the command."""

from kafka_audit.cli.main import main

main()

"""The command ``kafka-audit``. Nothing outside of this folder imports it."""

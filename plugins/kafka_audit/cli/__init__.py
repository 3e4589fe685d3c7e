"""The command ``kafka-audit``: each command reads its arguments, calls the other rooms and prints.

Nothing outside of this folder imports it.
"""

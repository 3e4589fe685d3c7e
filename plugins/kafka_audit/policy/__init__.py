"""The policy: what an installation demands of its topics, groups and clients, what it declares, and what it accepts for a time."""

from kafka_audit.policy.glob import glob_to_regex
from kafka_audit.policy.load import Policy, load_policy, shipped_policy_folder

__all__ = ["Policy", "glob_to_regex", "load_policy", "shipped_policy_folder"]

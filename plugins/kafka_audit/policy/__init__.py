"""The policy files: what an installation demands of topics, groups and clients, what owners declare, and which failures are waived."""

from kafka_audit.policy.glob import glob_to_regex
from kafka_audit.policy.load import Policy, load_policy, shipped_policy_folder
from kafka_audit.policy.yaml_file import explain, load_yaml

__all__ = ["Policy", "explain", "glob_to_regex", "load_policy", "load_yaml", "shipped_policy_folder"]

"""The policy files: what an installation demands of topics, groups and clients, what owners declare, and which failures are waived.

Nothing here knows the controls: ``audit.policy_fit`` checks that a policy fits them.
"""

from kafka_audit.input_files.glob import glob_to_regex
from kafka_audit.policy.load import Policy, load_policy, shipped_policy_folder

__all__ = ["Policy", "glob_to_regex", "load_policy", "shipped_policy_folder"]

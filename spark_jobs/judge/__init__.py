"""Judges wide rows by the controls and the policy: findings, their summary, and the folder of the audit that holds them."""

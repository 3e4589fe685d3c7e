"""What is said of an object store beside its URL: options in one variable, and the cloud's own environment."""

import os
from collections.abc import Mapping

from kafka_audit.errors import ConfigurationError

OPTIONS_VARIABLE = "KAFKA_AUDIT_STORE_OPTIONS"
"""``name=value`` pairs, separated by commas, beside the cloud's own environment: ``endpoint=https://minio:9000,region=eu-west-1``."""

_ENDPOINT_VARIABLES = (
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_ENDPOINT",
    "GOOGLE_BASE_URL",
)
_ENDPOINT_OPTIONS = ("endpoint", "endpoint_url", "endpoint_url_s3", "base_url")


def read_options() -> dict[str, str]:
    """The options in ``KAFKA_AUDIT_STORE_OPTIONS``; ConfigurationError (exit 2) when it has another form. No value is told."""
    found = {}
    for pair in os.environ.get(OPTIONS_VARIABLE, "").split(","):
        name, equals, value = pair.strip().partition("=")
        if pair.strip() and (not equals or not name.strip()):
            raise ConfigurationError(
                f"{OPTIONS_VARIABLE}: write name=value pairs, separated by commas, such as endpoint=https://store:9000"
            )
        if pair.strip():
            found[name.strip().lower()] = value.strip()
    return found


def endpoints(options: Mapping[str, str]) -> list[str]:
    """The addresses that the options and the environment name instead of the cloud's own."""
    named = [value for name, value in options.items() if name.endswith(_ENDPOINT_OPTIONS)]
    return [one for one in (*named, *(os.environ.get(name, "") for name in _ENDPOINT_VARIABLES)) if one]

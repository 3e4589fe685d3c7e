"""Updates the digest of every container image in docker/Dockerfile and docker-compose*.yaml; asks the registry through docker.

These files name an image as name:tag@sha256:..., so that a build next year uses the same bytes as today. The digest is that of the
tag's index, which covers all processor architectures. Needs docker with buildx.
"""

import re
import subprocess
import sys
from pathlib import Path

FILES = ("docker/Dockerfile", "docker-compose.yaml", "docker-compose.celery.yaml")
# PYTHON_IMAGE=name:tag or ${KAFKA_IMAGE:-name:tag}, with or without a digest.
IMAGE = re.compile(r"(?P<variable>\b[A-Z]+_IMAGE(?:=|:-))(?P<name>[a-z0-9./_-]+:[\w.-]+)(?P<digest>@sha256:[0-9a-f]{64})?")


def newest_digest(name: str) -> str:
    """Return the current digest ("sha256:...") of an image's tag. Ends the program with docker's message if docker has no answer."""
    command = ["docker", "buildx", "imagetools", "inspect", name, "--format", "{{.Manifest.Digest}}"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit("docker was not found on PATH: it asks the registry for the digests. No file was changed.")
    digest = found.stdout.strip()
    if found.returncode or not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        sys.exit(f"docker gave no digest of {name}: {found.stderr.strip() or digest or 'no answer'}. No file was changed.")
    return digest


def main(root: Path) -> None:
    """Get all digests first, then write: either all files are changed or none."""
    texts = {path: path.read_text(encoding="utf-8") for path in (root / name for name in FILES)}
    names = sorted({found["name"] for text in texts.values() for found in IMAGE.finditer(text)})
    digests = {name: newest_digest(name) for name in names}
    for path, text in texts.items():
        path.write_text(IMAGE.sub(lambda found: f"{found['variable']}{found['name']}@{digests[found['name']]}", text), encoding="utf-8")
    for name, digest in digests.items():
        sys.stdout.write(f"{name}@{digest}\n")


if __name__ == "__main__":
    main(Path(__file__).parents[1])

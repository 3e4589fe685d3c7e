"""docker-compose.yaml, docker-compose.celery.yaml and the values for Airflow's Helm chart do what their comments say.

The Compose Specification's schema checks the first two. Needs no container engine.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import yaml
from compose_files import CELERY_FILE, FILE, ROOT, made_env, merged, read

VALUES_FILE = ROOT / "docker" / "values.yaml"
AIRFLOW = ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")


@pytest.fixture(scope="module")
def compose() -> dict:
    return read(FILE)


@pytest.fixture(scope="module")
def services(compose: dict) -> dict:
    return compose["services"]


@pytest.fixture(scope="module")
def celery() -> dict:
    return read(CELERY_FILE)


@pytest.fixture(scope="module")
def both() -> dict:
    return merged()


def schema() -> dict:
    """The Compose Specification's own JSON schema, as the package check-jsonschema carries it."""
    vendored = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    return json.loads(vendored.read_text(encoding="utf-8"))


def test_the_files_are_valid_by_the_compose_specification(compose: dict, celery: dict) -> None:
    validator = jsonschema.validators.validator_for(schema())(schema())
    validator.validate(compose)
    validator.validate(celery)


def test_the_schema_really_refuses_a_wrong_file(compose: dict) -> None:
    wrong = {**compose, "services": {**compose["services"], "postgres": {"image": "postgres:16", "prots": ["5432"]}}}
    with pytest.raises(jsonschema.ValidationError, match="prots"):
        jsonschema.validators.validator_for(schema())(schema()).validate(wrong)


def test_the_installed_docker_accepts_the_file_when_it_has_compose() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed; the specification's schema was checked")
    secrets = made_env()
    for chosen in (["--file", str(FILE)], ["--file", str(FILE), "--file", str(CELERY_FILE)]):
        command = [docker, "compose", *chosen, "config", "--quiet"]
        found = subprocess.run(command, env={**os.environ, **secrets}, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr


def test_every_part_of_the_platform_is_there(services: dict) -> None:
    brokers = {f"kafka-{number}" for number in (1, 2, 3)}
    assert set(services) == {"postgres", "airflow-init", *AIRFLOW, *brokers, "spark-master", "spark-worker"}


def test_every_lasting_service_has_a_health_check_and_is_started_again(services: dict) -> None:
    for name, service in services.items():
        if name == "airflow-init":
            assert service["restart"] == "no"
            continue
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
        assert service["restart"] == "unless-stopped", name


def test_nothing_listens_outside_this_machine(services: dict) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []
    hosts = [port.split(":")[1] for port in published]
    assert len(hosts) == len(set(hosts))


def test_every_airflow_component_gets_the_same_secrets_from_the_environment_and_none_is_in_the_file(services: dict) -> None:
    shared = (
        "AIRFLOW__API_AUTH__JWT_SECRET",
        "AIRFLOW__API__SECRET_KEY",
        "AIRFLOW__CORE__FERNET_KEY",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
    )
    for name in shared:
        values = {services[component]["environment"][name] for component in AIRFLOW}
        assert len(values) == 1, name
        assert re.search(r"\$\{\w+:\?", values.pop()), f"{name} must come from .env and stop the start when it is missing"


@pytest.mark.parametrize(
    "name", ["CLUSTERS", "CLUSTER", "POLICY", "CONTROLS", "FOLDERS", "ON_FAIL", "REVIEW_HOURS", "REVIEW_MAX_DAYS", "REVIEWERS"]
)
def test_what_fixes_clusters_folders_and_reviews_is_the_same_in_every_airflow_component_and_empty_until_it_is_set(
    services: dict, name: str
) -> None:
    variable = f"KAFKA_AUDIT_{name}"
    assert {services[component]["environment"][variable] for component in AIRFLOW} == {f"${{{variable}:-}}"}


def test_make_env_sets_every_variable_that_must_be_set() -> None:
    texts = FILE.read_text(encoding="utf-8") + CELERY_FILE.read_text(encoding="utf-8")
    asked = set(re.findall(r"(?<!\$)\$\{(\w+):\?", texts))
    made = made_env()
    assert asked == set(made)
    assert all(len(value) >= 16 for value in made.values())
    assert made != made_env(), "secrets must be fresh each time"


def test_the_made_fernet_key_is_one() -> None:
    from cryptography.fernet import Fernet

    made = made_env()
    assert Fernet(made["AIRFLOW_FERNET_KEY"]).decrypt(Fernet(made["AIRFLOW_FERNET_KEY"]).encrypt(b"x")) == b"x"


def test_the_project_is_mounted_read_only_and_the_audits_are_shared_with_spark(services: dict) -> None:
    for name in (*AIRFLOW, "spark-master", "spark-worker"):
        assert ".:/opt/kafka-audit:ro" in services[name]["volumes"], name
        assert "audits:/var/lib/kafka-audit" in services[name]["volumes"], name


def test_every_volume_is_declared_and_used(compose: dict, services: dict) -> None:
    mounted = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])}
    assert {name for name in mounted if not name.startswith(".")} == set(compose["volumes"])


@pytest.mark.parametrize("files", ["services", "both"])
def test_every_dependency_exists_and_waits_for_a_condition_that_can_come(request: pytest.FixtureRequest, files: str) -> None:
    started = request.getfixturevalue(files)
    for name, service in started.items():
        for other, wait in (service.get("depends_on") or {}).items():
            assert other in started or not wait.get("required", True), (name, other)
            assert wait["condition"] != "service_healthy" or "healthcheck" in started.get(other, wait) or not wait.get("required", True)


def test_the_project_runs_as_a_plain_user_with_no_rights_and_can_write_to_volumes_and_tmp_alone(both: dict, services: dict) -> None:
    ours = [service for service in [*services.values(), *both.values()] if service["image"] == "kafka-audit:local"]
    assert len(ours) == len(AIRFLOW) * 2 + 2 + 2 + 2  # airflow-init twice, Spark's two, two workers
    for service in ours:
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not {"user", "privileged", "cap_add"} & set(service)
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    last_stage = dockerfile[dockerfile.rindex("\nFROM ") :]
    assert re.findall(r"^USER (\d+)$", last_stage, flags=re.MULTILINE) == ["50000"]
    written = {volume.split(":")[1] for service in ours for volume in service["volumes"] if not volume.endswith(":ro")}
    for folder in written:
        assert re.search(rf"mkdir -p .*{folder}\b", last_stage), f"a new volume at {folder} would belong to root"


def test_with_celery_every_component_has_the_same_queue_root_and_keys_and_the_workers_share_no_disk(both: dict, celery: dict) -> None:
    workers = ("airflow-worker-1", "airflow-worker-2")
    for name in ("airflow-init", *AIRFLOW, *workers):
        environment = both[name]["environment"]
        assert {key: environment[key] for key in celery["x-celery"]} == celery["x-celery"], name
        assert environment["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"
        assert environment["KAFKA_AUDIT_ROOT"].startswith("s3://")
    assert both[workers[0]]["command"] == both[workers[1]]["command"] == ["airflow", "celery", "worker"]
    assert len({both[name]["hostname"] for name in workers}) == 2
    disks = [{volume for volume in both[name]["volumes"] if not volume.endswith(":ro")} for name in workers]
    assert {volume.split(":")[0] for volume in disks[0] & disks[1]} == {"airflow-secrets"}
    assert {volume.split(":")[0] for service in celery["services"].values() for volume in service.get("volumes", [])} == set(
        celery["volumes"]
    )


def test_every_variable_of_ours_that_is_set_is_one_that_the_platform_reads(both: dict) -> None:
    values = yaml.safe_load(VALUES_FILE.read_text(encoding="utf-8"))
    named = {name for service in both.values() for name in service.get("environment", {})} | {one["name"] for one in values["env"]}
    known = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "plugins").rglob("*.py"))
    assert [name for name in sorted(named) if name.startswith("KAFKA_AUDIT_") and f'"{name}"' not in known] == []


def test_the_helm_values_name_one_image_for_all_and_keep_secrets_out() -> None:
    values = yaml.safe_load(VALUES_FILE.read_text(encoding="utf-8"))
    names = {f"{values['images'][part]['repository']}:{values['images'][part]['tag']}" for part in ("airflow", "pod_template")}
    assert names | {container["image"] for container in values["apiServer"]["extraInitContainers"]} == names
    assert len(names) == 1
    pinned = re.search(r"^apache-airflow==(.+)$", (ROOT / "requirements.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert pinned and values["airflowVersion"] == pinned.group(1)
    assert all(values[f"{key}SecretName"] for key in ("fernetKey", "jwt", "apiSecretKey")) and values["data"]["metadataSecretName"]
    assert not [one for one in values["env"] if re.search("password|secret", f"{one['name']}{one['value']}", re.IGNORECASE)]


def test_brokers_differ_in_id_rack_address_and_disk_and_share_one_cluster(services: dict) -> None:
    brokers = [services[f"kafka-{number}"] for number in (1, 2, 3)]
    for key in ("KAFKA_NODE_ID", "KAFKA_BROKER_RACK", "KAFKA_ADVERTISED_LISTENERS"):
        assert len({broker["environment"][key] for broker in brokers}) == 3, key
    assert len({broker["volumes"][0] for broker in brokers}) == 3
    assert len({broker["environment"]["CLUSTER_ID"] for broker in brokers}) == 1
    for broker in brokers:
        port = broker["ports"][0].split(":")[1]
        assert f"HOST://127.0.0.1:{port}" in broker["environment"]["KAFKA_ADVERTISED_LISTENERS"]
        listeners = dict(listener.split("://") for listener in broker["environment"]["KAFKA_LISTENERS"].split(","))
        assert broker["ports"][0].endswith(listeners["HOST"])


def test_brokers_run_the_release_of_the_sandbox(services: dict) -> None:
    ivy = (ROOT / "plugins" / "kafka_audit" / "jars" / "ivy.xml").read_text(encoding="utf-8")
    release = re.search(r'name="kafka_2\.13" rev="([\d.]+)"', ivy)
    assert release
    for number in (1, 2, 3):
        assert services[f"kafka-{number}"]["image"].startswith(f"${{KAFKA_IMAGE:-apache/kafka:{release.group(1)}@sha256:")


def test_connections_are_what_the_hooks_expect(services: dict) -> None:
    from kafka_audit.cluster.connection import ConnectionSettings

    environment = services["airflow-scheduler"]["environment"]
    kafka = json.loads(environment["AIRFLOW_CONN_KAFKA_DEFAULT"])
    assert ConnectionSettings.from_mapping(kafka["extra"]).bootstrap_servers == ("kafka-1:9092", "kafka-2:9092", "kafka-3:9092")
    spark = json.loads(environment["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert f"{spark['host']}:{spark['port']}" == services["spark-worker"]["command"][-1]


def test_every_file_that_the_image_and_the_commands_use_exists() -> None:
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, flags=re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
    for script in re.findall(r"python3? (docker/\w+\.py)", FILE.read_text(encoding="utf-8")):
        assert (ROOT / script).is_file(), script


def test_the_first_start_writes_the_password_so_that_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "passwords.json"
    variables = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(path), "AIRFLOW_ADMIN_PASSWORD": 'a "b" c'}
    subprocess.run([sys.executable, str(ROOT / "docker" / "write_users.py")], env={**os.environ, **variables}, check=True)
    assert json.loads(path.read_text(encoding="utf-8")) == {"admin": 'a "b" c'}
    assert path.stat().st_mode & 0o777 == 0o600


def test_make_env_writes_a_file_of_its_owner_alone_and_keeps_one_that_is_there(tmp_path: Path) -> None:
    script = tmp_path / "docker" / "make_env.py"
    script.parent.mkdir()
    shutil.copy(ROOT / "docker" / "make_env.py", script)

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, umask=0o000, check=False)

    assert run().returncode == 0
    written = tmp_path / ".env"
    assert written.stat().st_mode & 0o777 == 0o600
    before = written.read_text(encoding="utf-8")
    assert "POSTGRES_PASSWORD=" in before
    refused = run()
    assert (refused.returncode, written.read_text(encoding="utf-8")) == (1, before)
    assert "is there already and was kept" in refused.stderr


def test_make_env_redirected_into_the_file_itself_makes_it_its_owners_alone_and_a_log_gets_no_secret(tmp_path: Path) -> None:
    script, written, log = tmp_path / "docker" / "make_env.py", tmp_path / ".env", tmp_path / "log"
    script.parent.mkdir()
    shutil.copy(ROOT / "docker" / "make_env.py", script)
    for target in (log, written):
        written.unlink(missing_ok=True)
        with target.open("w", encoding="utf-8") as stream:
            target.chmod(0o644)
            subprocess.run([sys.executable, str(script)], stdout=stream, check=True)
        assert written.stat().st_mode & 0o777 == 0o600
        assert written.read_text(encoding="utf-8").startswith("POSTGRES_PASSWORD=")
    assert log.read_text(encoding="utf-8") == f"wrote {written}\n"

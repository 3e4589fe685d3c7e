"""Turns the states of cases into snapshots. The names of a case begin with its id, so that many cases fit into one cluster."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from snapshot_builder import READ_AT, READ_MS, TOPIC_DEFAULTS, Synthetic

from kafka_audit.store.layout import Snapshot

BROKERS: dict[int, dict[str, Any]] = {
    **{1: {"rack": "a"}, 2: {"rack": "b"}, 3: {"rack": "c"}, 4: {"rack": "a"}, 5: {"rack": "a"}},
    **{6: {"rack": "b", "release": "before 3.7"}, 7: {"rack": "b", "release": "unknown"}},
}
CONFIGS = {
    "group.max.session.timeout.ms": "1800000",
    "group.min.session.timeout.ms": "6000",
    "replica.fetch.response.max.bytes": "10485760",
    "transaction.max.timeout.ms": "900000",
    "transaction.partition.verification.enable": "true",
    "transactional.id.expiration.ms": "604800000",
}
CONTROLLER = {"unclean.leader.election.enable": "false", "default.replication.factor": "3", "min.insync.replicas": "2"}
_OF_PARTITION = {"replicas": "replicas", "isr": "isr", "leader": "leader", "epoch": "leader_epoch", "elr": "eligible_leader_replicas"}
_TIMES = {"last_caught_up_timestamp_ms", "last_fetch_timestamp_ms", "last_timestamp_ms", "max_timestamp_ms", "timestamp_ms"}
_BEFORE_3_7 = 0  # of DescribeCluster's versions


def named(case_id: str, name: str) -> str:
    """A topic's, group's or client's name in the cluster that cases share; Kafka's own topics keep theirs."""
    return name if name.startswith("__") else f"{case_id}.{name}"


def place_of(text: str) -> tuple[str, int]:
    """``t-1`` is partition 1 of topic t, ``t`` is its partition 0."""
    topic, dash, number = text.rpartition("-")
    return (topic, int(number)) if dash else (text, 0)


def cluster(about: Mapping[str, Any]) -> Synthetic:
    """A cluster without topics, as the section ``cluster`` of a state describes it."""
    brokers = {int(number): one or {} for number, one in about.get("brokers", BROKERS).items()}
    versions = {number: {"before 3.7": _BEFORE_3_7, "unknown": None}.get(one.get("release"), 2) for number, one in brokers.items()}
    configs = {number: {**CONFIGS, **one.get("configs", {})} for number, one in brokers.items()}
    texts = {number: {name: str(value) for name, value in one.items()} for number, one in configs.items()}
    one = Synthetic().brokers({number: row.get("rack") for number, row in brokers.items()}, texts, versions)
    for setting in one.tables["broker_configs"]:
        if setting["name"] in about.get("cluster_wide", {}):
            wide = {"value": str(about["cluster_wide"][setting["name"]]), "source": "DYNAMIC_DEFAULT_BROKER_CONFIG"}
            setting |= {**wide, "synonyms": [{"name": setting["name"], **wide}]}
        if setting["name"].endswith(".throttled.rate"):
            setting["source"] = "DYNAMIC_BROKER_CONFIG"  # it has no other
    for number, row in brokers.items():
        of_broker = {name: next(each for each in one.tables[name] if each["broker_id"] == number) for name in ("brokers", "log_dirs")}
        of_broker["brokers"] |= {name: row[name] for name in ("alive", "answered") if name in row}
        of_broker["log_dirs"] |= row.get("disk", {})
        voter = next(each for each in one.tables["quorum"] if each["replica_id"] == number)
        voter["last_caught_up_timestamp_ms"] = READ_MS - row.get("metadata_lag_ms", 5)
        if not row.get("voter", True):
            one.tables["quorum"].remove(voter)
        for name in row.get("unread_configs", ()):
            one.tables["broker_configs"] = [
                each for each in one.tables["broker_configs"] if (each["broker_id"], each["name"]) != (number, name)
            ]
    for number, told in about.get("controllers", {}).items():
        _add_controller(one, int(number), told)
    levels = [{"finalized_min": 0, "supported_min": 0, "name": name, **one} for name, one in about.get("features", {}).items()]
    one.tables["cluster"][0] |= {"features": levels, **about.get("row", {})}
    for number, topic in enumerate(about.get("only_on_disk", ())):
        one.add("replica_sizes", broker_id=1, path="/data", topic=topic, partition=number, size_bytes=1, is_future=False)
    for refusal in about.get("refused", ()):
        one.error(
            refusal["reading"], refusal["error"], **{name: value for name, value in refusal.items() if name not in ("reading", "error")}
        )
    for name, limits in about.get("quotas", {}).items():
        for key, value in limits.items():
            one.add("client_quotas", entity=json.dumps([name.split(" ", 1)]), key=key, value=float(value))
    for rule in about.get("acls", ()):
        one.add("acls", **{"host": "*", "permission_type": "ALLOW", "pattern_type": "LITERAL", **rule})
    return one


def _add_controller(one: Synthetic, number: int, told: Mapping[str, Any] | str) -> None:
    """A voter that is no broker, with its own settings, or the error with which it did not tell them."""
    times = {"last_fetch_timestamp_ms": READ_MS - 5, "last_caught_up_timestamp_ms": READ_MS - 5, "read_at": READ_AT}
    one.add("quorum", replica_id=number, role="voter", is_leader=False, log_end_offset=10, **times)
    if isinstance(told, str):
        one.error("controller_configs", told, broker_id=number)
        return
    for name, value in {**CONTROLLER, **told}.items():
        source = "STATIC_BROKER_CONFIG" if name in told else "DEFAULT_CONFIG"
        row = {"name": name, "value": str(value), "source": source, "is_sensitive": False, "synonyms": []}
        one.add("controller_configs", controller_id=number, **row)


def add_case(one: Synthetic, case_id: str, state: Mapping[str, Any], *, now: bool) -> None:
    """Adds the topics and groups of a case to a cluster, as they are at one sample. The ages of records are those of now."""
    topics = {name: dict(about or {}) for name, about in state.get("topics", {}).items() if about != "absent"}
    for about in () if now else topics.values():
        about.pop("records", None)
    for name, about in topics.items():
        _add_topic(one, named(case_id, name), about)
    limit = state.get("sla", {}).get("max_lag_seconds")
    for name, about in topics.items():
        if limit is not None and "records" in about:
            asked = {"max_lag_seconds": limit, "timestamp_ms": READ_MS - limit * 1000, "offset": _first_younger(about, limit)}
            one.add("sla_offsets", topic=named(case_id, name), partition=0, read_at=READ_AT, **asked)
    for name, about in state.get("groups", {}).items():
        if about != "absent":
            _add_group(one, case_id, name, about or {}, topics)


def _add_topic(one: Synthetic, name: str, about: Mapping[str, Any]) -> None:
    configs, count = about.get("configs", {}), about.get("partitions", 1)
    texts = {} if configs == "refused" else {key: str(value) for key, value in configs.items()}
    one.topic(
        name,
        partitions=count,
        replicas=about.get("replicas"),
        config=texts,
        internal=name in ("__consumer_offsets", "__transaction_state", "__share_group_state"),
        without_config=configs == "refused",
        topic_id=about.get("id", f"id-{name}"),
    )
    if configs == "refused":
        one.error("topic_configs", "TOPIC_AUTHORIZATION_FAILED", topic=name)
    for reading, error in about.get("refused", {}).items():
        one.error(reading, error, topic=name)
    for row in one.tables["partitions"][-count:]:
        part = {**about, **about.get("per_partition", {}).get(str(row["partition"]), {})}
        row.update({column: part[field] for field, column in _OF_PARTITION.items() if field in part})
        if "replicas" in part and "leader" not in part:
            row["leader"] = part["replicas"][0]
        if "isr" not in part:
            row["isr"] = row["replicas"]
        _add_partition(one, name, row["partition"], part)


def _add_partition(one: Synthetic, name: str, number: int, part: Mapping[str, Any]) -> None:
    if "adding" in part or "removing" in part:
        moves = {"adding_replicas": part.get("adding", []), "removing_replicas": part.get("removing", [])}
        one.add("reassignments", topic=name, partition=number, replicas=part.get("replicas", [1, 2, 3]), **moves)
    if "size_bytes" in part:
        for row in one.tables["replica_sizes"]:
            if (row["topic"], row["partition"]) == (name, number):
                row["size_bytes"] = part["size_bytes"]
    for stray in part.get("also_on_disk", ()):
        one.add("replica_sizes", **{"path": "/data", "topic": name, "partition": number, "size_bytes": 1, "is_future": False, **stray})
    written = part.get("written_minutes_ago")
    if "end_error" in part:
        one.offsets(name, number, error=part["end_error"])
        one.error("offsets", part["end_error"], topic=name, partition=number)
    elif "end" in part:
        log = {"log_start": part.get("start", 0), "log_end": part["end"], "last_stable": part.get("stable", part["end"])}
        if written is not None:
            log["max_timestamp_ms"] = READ_MS - int(written * 60_000)
        if "records" in part:
            retention = int({**TOPIC_DEFAULTS, **part.get("configs", {})}["retention.ms"])
            log["headroom_offset"] = _first_younger(part, retention / 4000) if retention >= 0 else part.get("start", 0)
        one.offsets(name, number, **log)
        if "end_read_minutes_later" in part:
            one.tables["offsets"][-1]["read_at"] = timedelta(minutes=part["end_read_minutes_later"])
    if "last_batch" in part:
        batch, last = part["last_batch"], part["end"] - 1
        columns = {"is_control": batch.get("control", False), "is_transactional": batch.get("transactional", False)}
        columns = {"error": batch["error"]} if "error" in batch else columns | {"producer_id": batch.get("producer", -1)}
        one.add("last_batches", topic=name, partition=number, base_offset=last, last_offset=last, read_at=READ_AT, **columns)
    _add_upload(one, name, number, part.get("tiered"))
    for producer in part.get("producers", ()):
        _add_producer(one, name, number, producer)


def _add_upload(one: Synthetic, name: str, number: int, tiered: str | list[int] | None) -> None:
    if tiered is not None:
        columns = {"error": tiered} if isinstance(tiered, str) else dict(zip(("latest_tiered", "due_offset"), tiered, strict=True))
        one.add("tiered_offsets", topic=name, partition=number, read_at=READ_AT, **columns)


def _add_producer(one: Synthetic, name: str, number: int, about: Mapping[str, Any]) -> None:
    last = READ_MS - int(about["silent_minutes"] * 60_000)
    row = {"producer_id": about["id"], "producer_epoch": 0, "last_timestamp_ms": last}
    one.add("producers", topic=name, partition=number, current_txn_start_offset=about.get("open_from", -1), **row)
    if "transaction" in about:
        places = [{"topic": name, "partition": number}]
        known = {"state": about["transaction"], "coordinator_id": 1, "partitions": places}
        one.add("transactions", transactional_id=f"{name}-{about['id']}", producer_id=about["id"], **known)


def _first_younger(about: Mapping[str, Any], seconds: float) -> int:
    """The offset of the first known record that is at most so many seconds old, else the log end: what ListOffsets by time answers."""
    return next((int(offset) for offset, age in about["records"].items() if age <= seconds), about["end"])


def _add_group(one: Synthetic, case_id: str, name: str, about: Mapping[str, Any], topics: Mapping[str, Any]) -> None:
    group_id = named(case_id, name)
    members = about.get("members", [{"reads": about["reads"]}] if "reads" in about else [])
    row = {"group_type": about.get("type", "classic"), "state": about.get("state", "Stable" if members else "Empty")}
    row |= {"protocol_type": about.get("protocol", "consumer"), "assignor": about.get("assignor"), "error": about.get("error")}
    one.add("groups", group_id=group_id, coordinator_id=1, **row)
    for number, member in enumerate(members):
        places = [place_of(text) for text in member.get("reads", [])]
        assigned = [{"topic": named(case_id, topic), "partition": partition} for topic, partition in places]
        subscribes = member.get("subscribes", sorted({topic for topic, _ in places}))
        listed = None if subscribes == "unknown" else [named(case_id, topic) for topic in subscribes]
        who = {"member_id": f"member-{number}", "client_id": "client", "instance_id": member.get("instance")}
        one.add("members", group_id=group_id, assignment=assigned, subscribed_topics=listed, **who)
    for reading, error in about.get("refused", {}).items():
        one.error(reading, error, group_id=group_id)
    for key, value in about.get("configs", {}).items():
        one.add("group_configs", group_id=group_id, name=key, value=str(value), source="DEFAULT_CONFIG", is_sensitive=False, synonyms=[])
    for text, committed in about.get("commits", {}).items():
        topic, partition = place_of(text)
        if committed == "refused":
            one.commit(group_id, named(case_id, topic), None, partition, error="TOPIC_AUTHORIZATION_FAILED")
            continue
        one.commit(group_id, named(case_id, topic), committed, partition)
        if committed is not None and "records" in topics.get(topic, {}) and "end" in topics[topic]:
            _add_first_unread(one, named(case_id, topic), committed, topics[topic])


def _add_first_unread(one: Synthetic, topic: str, committed: int, about: Mapping[str, Any]) -> None:
    position = max(committed, about.get("start", 0))
    if position >= about["end"]:
        return
    offset, age = next(((int(offset), age) for offset, age in about["records"].items() if int(offset) >= position), (None, None))
    time = {} if offset is None else {"timestamp_ms": READ_MS - int(age * 1000), "timestamp_type": "CreateTime"}
    if error := about.get("refused", {}).get("first_unread"):
        offset, time = None, {"error": error}
    if not any((row["topic"], row["offset"]) == (topic, position) for row in one.tables["first_unread"]):
        one.add("first_unread", topic=topic, partition=0, offset=position, record_offset=offset, read_at=READ_AT, **time)


def write(one: Synthetic, root: Path, minutes_ago: float) -> Snapshot:
    """Writes the sample of so many minutes ago; its times are moved back by as much."""
    taken = READ_AT - timedelta(minutes=minutes_ago)
    for table in one.tables.values():
        for row in table:
            if isinstance(row.get("read_at"), timedelta):
                row["read_at"] = taken + row["read_at"]
            for name in _TIMES & row.keys():
                row[name] = None if row[name] is None else row[name] - int(minutes_ago * 60_000)
    return one.write(root, taken)

"""What an OSCAL document stands on: its back matter (no plan, the evidence with hashes), the cluster, the tool, and what was reviewed."""

from collections.abc import Iterable
from typing import Any

from kafka_audit import __version__
from kafka_audit.report.inert_text import line, markdown
from kafka_audit.report.model import Report
from kafka_audit.report.oscal_parts import hashed_file, prop, props, resource, token, tokens
from kafka_audit.report.resource_names import ResourceName, encoded, uuid_of


class Sources:
    """The UUIDs of a report's sources, computed from the audit's id, and the objects that have them."""

    def __init__(self, report: Report, cluster: str) -> None:
        self._report = report
        self._name = cluster
        self.no_plan, self.snapshot, self.catalogue, self.policy, self.audit = (
            uuid_of("resource", report.audit_id, what) for what in ("no-plan", "snapshot", "catalogue", "policy", "audit")
        )
        self.tool = uuid_of("tool", "kafka-audit", __version__)
        self.cluster = uuid_of("cluster", cluster)

    @property
    def origins(self) -> list[dict[str, Any]]:
        """The tool as the one that observed."""
        return [{"actors": [{"type": "tool", "actor-uuid": self.tool}]}]

    @property
    def links(self) -> list[dict[str, str]]:
        """Links to the resources of the back matter."""
        named = (self.no_plan, self.snapshot, self.catalogue, self.policy, self.audit)
        return [{"href": f"#{one}", "rel": "reference"} for one in named]

    def back_matter(self) -> dict[str, Any]:
        """The resources: that there is no plan, then snapshot, catalogue, policy and the audit's files, each with its hashes."""
        made, report = self._report.collection, self._report
        folder = f"audits/{encoded(report.cluster)}/{encoded(report.audit_id)}"
        snapshot = f"evidence/{encoded(report.cluster)}/{encoded(made.snapshot_id)}/manifest.json"
        plan = (
            "There is no assessment plan. OSCAL requires assessment results to import one, so the import refers to this resource. "
            "What was to be assessed is the rule catalogue under the policy, whose hashes are in this document."
        )
        rules = f"{len(report.results)} rules. The hash is computed over all of the catalogue's files."
        policy = "Tiers, severities, waivers, declarations and frameworks. The hash is computed over all of the policy's files."
        files = [hashed_file(f"{folder}/{_path(one.path)}", one.sha256, _media_type(one.path)) for one in report.audit_files]
        return {
            "resources": [
                resource(self.no_plan, "No assessment plan", plan),
                resource(
                    self.snapshot,
                    "Snapshot of the cluster",
                    f"The evidence: snapshot {made.snapshot_id}. Its manifest has the hash of every file in it.",
                    rlinks=[hashed_file(snapshot, made.manifest_sha256, "application/json")],
                    props=props((("snapshot-id", made.snapshot_id), ("sha256", made.manifest_sha256))),
                ),
                resource(self.catalogue, "Rule catalogue", rules, props=[prop("sha256", report.catalogue_sha256)]),
                resource(self.policy, "Policy", policy, props=[prop("sha256", report.policy.sha256)]),
                resource(
                    self.audit,
                    "Files of the audit",
                    "All results, those that this document does not list among them, and the results of the gates.",
                    **({"rlinks": files} if files else {}),
                ),
            ]
        }

    def local_definitions(self, names: Iterable[tuple[ResourceName, str]]) -> dict[str, Any]:
        """The cluster and the tool as components, and the resources that observations are about, each once, as inventory items."""
        report, made = self._report, self._report.collection
        cluster = {
            "uuid": self.cluster,
            "type": "service",
            "title": markdown(f"Kafka cluster {report.cluster}"),
            "description": markdown(f"The Apache Kafka cluster with the id {made.cluster_id or 'not known'}."),
            "props": [prop("kafka-name", f"kafka://{self._name}/"), *props((("cluster-id", made.cluster_id or None),))],
            "status": {"state": "operational"},
        }
        tool = {
            "uuid": self.tool,
            "type": "software",
            "title": f"kafka-audit {__version__}",
            "description": "A read-only reliability audit for Apache Kafka.",
            "props": [{"name": "version", "value": __version__}],
            "status": {"state": "operational"},
        }
        items = {name.uri: (name, text) for name, text in names}
        inventory = [
            {
                "uuid": uuid_of("item", uri),
                "description": markdown(f"{name.kind} {text}" if name.kind != "cluster" else "the cluster as a whole"),
                "props": [prop("kafka-name", uri), prop("name", text)],
                "implemented-components": [{"component-uuid": self.cluster}],
            }
            for uri, (name, text) in sorted(items.items())
        ]
        platform = {"uuid": uuid_of("platform", report.audit_id), "uses-components": [{"component-uuid": self.tool}]}
        return {
            "components": [cluster],
            **({"inventory-items": inventory} if inventory else {}),
            "assessment-assets": {"components": [tool], "assessment-platforms": [platform]},
        }

    def reviewed_controls(self) -> dict[str, Any]:
        """Per framework the requirements that results say something about; as objectives, the rules themselves."""
        selections = [
            {
                "description": markdown(
                    f"{one.title} {one.edition} ({one.source}). Rules support these requirements and do not prove them."
                ),
                "props": [prop("framework", one.id)],
                "include-controls": [
                    {"control-id": name} for name in _unique(name for each in one.requirements for name in tokens(each.id))
                ],
            }
            for one in self._report.frameworks
            if one.requirements
        ]
        ran = _unique(token(result.control_id) for result in self._report.results if result.counts is not None)
        objectives = {"description": "The rules that ran.", "include-objectives": [{"objective-id": name} for name in ran]}
        own = [{"control-id": name} for name in _unique(token(result.control_id) for result in self._report.results)]
        itself: dict[str, Any] = {
            "description": "The policy names no requirement of a framework: the rules of the catalogue stand for themselves.",
            **({"include-controls": own} if own else {"include-all": {}}),
        }
        return {
            "control-selections": selections or [itself],
            **({"control-objective-selections": [objectives]} if ran else {}),
            **({} if ran else {"remarks": "No rule ran: nothing was reviewed."}),
        }


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _path(path: str) -> str:
    return "/".join(encoded(part) for part in line(path).split("/"))


def _media_type(path: str) -> str:
    return "application/json" if path.endswith(".json") else "application/vnd.apache.parquet"

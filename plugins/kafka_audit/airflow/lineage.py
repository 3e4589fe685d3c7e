"""An audit as OpenLineage sees it: the Kafka topics that it read, the audit that it made, and its controls as tests.

Loaded only where ``apache-airflow-providers-openlineage`` is installed: that provider calls the operator's method (publish.py).
"""

from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import Dataset, InputDataset, OutputDataset
from openlineage.client.facet_v2 import dataset_version_dataset, documentation_dataset, test_run

from kafka_audit.airflow.hook import KafkaAuditHook
from kafka_audit.audit.lineage_facts import LineageFacts, lineage_facts
from kafka_audit.audit.published import PublishedVerdict
from kafka_audit.audit.request import AuditPlan

_NAMESPACE = "kafka-audit://audits"


def audit_lineage(plan: AuditPlan, said: PublishedVerdict) -> OperatorLineage[Dataset, test_run.TestRunFacet]:
    """Topics in, audit out; ConfigurationError when the connection is gone, which the provider logs.

    Inputs are named as OpenLineage names Kafka topics: namespace ``kafka://<first bootstrap host:port>``, name = topic. The output is the
    dataset ``<cluster>`` of the namespace ``kafka-audit://audits`` in the version of the audit's id. Controls are tests of the run facet
    ``test``; ``pass`` and ``fail`` as in the report, ``skip`` for what was not assessed.
    """
    facts = lineage_facts(plan)
    servers = KafkaAuditHook(plan.kafka_conn_id).get_conn().bootstrap_servers
    text = f"Audit {said.audit_id} of the Kafka cluster {said.cluster}: {said.verdict}. {facts.left_out}".strip()
    output = OutputDataset(
        namespace=_NAMESPACE,
        name=said.cluster,
        facets={
            "version": dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=said.audit_id),
            "documentation": documentation_dataset.DocumentationDatasetFacet(description=text),
        },
    )
    return OperatorLineage(
        inputs=[InputDataset(namespace=f"kafka://{servers[0]}", name=topic) for topic in facts.topics],
        outputs=[output],
        run_facets={"test": test_run.TestRunFacet(tests=_tests(facts))},
    )


def _tests(facts: LineageFacts) -> list[test_run.TestExecution]:
    return [
        test_run.TestExecution(name=one.code, status=one.status, type=one.control_id, description=one.title, actual=one.counts)
        for one in facts.controls
    ]

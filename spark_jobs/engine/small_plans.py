"""How Spark SQL plans the queries of a small cluster (``tables.SMALL_ROWS``), for which planning takes longer than running."""

from collections.abc import Mapping

_OPTIMIZER_RULES = """
    BooleanSimplification CollapseRepartition CollapseWindow CombineConcats CombineTypedFilters ConstantPropagation
    CostBasedJoinReorder DecimalAggregates EliminateAggregateFilter EliminateDistinct EliminateLimits EliminateMapObjects
    EliminateOffsets EliminateOuterJoin EliminateSerialization EliminateSorts EliminateWindowPartitions FoldablePropagation
    GenerateOptimization InferFiltersFromConstraints InferFiltersFromGenerate InferWindowGroupLimit InjectRuntimeFilter
    LikeSimplification LimitPushDown LimitPushDownThroughWindow MergeSubplans NullDownPropagation NullPropagation
    ObjectSerializerPruning OptimizeCsvJsonExprs OptimizeExpand OptimizeJoinCondition OptimizeOneRowPlan
    OptimizeOneRowRelationSubquery OptimizeRand OptimizeRepartition OptimizeUpdateFields OptimizeWindowFunctions PruneFilters
    PullOutNestedDataOuterRefExpressions PushDownJoinThroughUnion PushDownLeftSemiAntiJoin PushExtraPredicateThroughJoin
    PushFoldableIntoBranches PushLeftSemiLeftAntiThroughJoin PushPredicateThroughJoin PushPredicateThroughNonJoin
    PushProjectionThroughLimitAndOffset PushProjectionThroughUnion PushdownPredicatesAndPruneColumnsForCTEDef
    ReassignLambdaVariableID RemoveLiteralFromGroupExpressions RemoveNoopUnion RemoveRedundantAggregates RemoveRedundantAliases
    RemoveRedundantSorts RemoveRepetitionFromGroupExpressions ReorderAssociativeOperator ReorderJoin ReplaceNullWithFalseInPredicate
    RewriteNonCorrelatedExists SimplifyBinaryComparison SimplifyCaseConversionExpressions SimplifyCasts SimplifyConditionals
    SimplifyDateTimeConversions SimplifyExtractValueOps TransposeWindow UnwrapCastInBinaryComparison
"""
_EXECUTION_RULES = """
    OptimizeMetadataOnlyQuery datasources.PruneFileSourcePartitions datasources.PushVariantIntoScan datasources.SchemaPruning
    datasources.v2.OptimizeMetadataOnlyDeleteFromTable dynamicpruning.PartitionPruning
    dynamicpruning.RowLevelOperationRuntimeGroupFiltering
"""
SKIPPED_RULES = (
    *(f"org.apache.spark.sql.catalyst.optimizer.{name}" for name in _OPTIMIZER_RULES.split()),
    *(f"org.apache.spark.sql.execution.{name}" for name in _EXECUTION_RULES.split()),
)
"""Rules of Spark's optimizer that together take longer than the queries gain from them. Spark lists them as not needed for a right result.

The rules that stay prune columns, merge projections, push filters down, evaluate constants once, and compute without a Spark job what
needs only rows that the driver holds.
"""

PLANNING: Mapping[str, str] = {
    "spark.sql.optimizer.excludedRules": ",".join(SKIPPED_RULES),
    # Nothing is compiled: a class that is generated for an expression costs more than evaluating it a thousand times.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    # All tables are one partition: a join needs neither an exchange nor a broadcast, each of which is a Spark job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    # Every query's plan is described for a user interface that is off by default: the short description is the quicker one to make.
    "spark.sql.ui.explainMode": "simple",
}
"""Settings of Spark SQL for such queries."""

"""Big-endian integers inside a binary column; positions count from 1, as in Spark's ``substring``.

``number`` is what the hot path uses. Spark's SQL has no function for it: ``conv(hex(...))``, which the rarer records use as SQL text, costs
0.1 to 0.2 microseconds an integer, and reading byte by byte with ``ascii`` ten times that.
"""

from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F


def number(buffer: str, position: str | int, width: int) -> Column:
    """A two's complement integer of 1, 2, 4 or 8 bytes, bigint; NULL for a NULL buffer, zero-filled where bytes are missing.

    The expression is Catalyst's StaticInvoke (as ``startswith`` is) of ``org.apache.spark.unsafe.types.ByteArray.getPrefix``, by which
    Spark sorts binary columns: the first 8 bytes as a big-endian long.
    """
    jvm: Any = SparkSession.active()._jvm
    classic = jvm.org.apache.spark.sql.classic.ExpressionUtils
    none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    prefix = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
        jvm.java.lang.Class.forName("org.apache.spark.unsafe.types.ByteArray"),
        jvm.org.apache.spark.sql.types.DataType.fromDDL("bigint"),
        "getPrefix",
        jvm.PythonUtils.toSeq([classic.expression(F.expr(f"substring({buffer}, {position}, {width})")._jc)]),
        jvm.PythonUtils.toSeq([]),  # no declared input types: the argument is binary already
        *(True, True, True),  # NULL in, NULL out; may be NULL; deterministic
        none,  # stands for no SQL function
    )
    return F.shiftright(Column(classic.column(prefix)), 64 - 8 * width)


def unsigned(buffer: str, position: str | int, width: int) -> str:
    """SQL text of an unsigned integer of at most 7 bytes, bigint; NULL where the buffer, the position or every byte is missing."""
    return f"cast(conv(hex(substring({buffer}, {position}, {width})), 16, 10) as bigint)"


def signed(buffer: str, position: str | int, width: int) -> str:
    """SQL text of a two's complement integer of 1, 2, 4 or 8 bytes, bigint; NULL as in :func:`unsigned`."""
    if width == 8:
        return f"cast(conv(hex(substring({buffer}, {position}, 8)), 16, -10) as bigint)"
    half = 1 << (8 * width - 1)
    return f"((({unsigned(buffer, position, width)} + {half}L) & {2 * half - 1}L) - {half}L)"

"""Expressions that compute a value once and use it often, within one column.

Spark stores the columns of every step of a plan in one block of bytes. To evaluate functions of arrays, such as ``filter``, it reads each
element and field from there through a search for its type, which takes microseconds (Spark 4.2.0: ``SpecializedGettersReader``).
Values inside of one expression are objects that need no such search.
"""

from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

Step = Callable[[Column], Mapping[str, Column]]


def bound(value: Column, then: Callable[[Column], Column]) -> Column:
    """``then`` of a value that is computed once, however often ``then`` reads it."""
    return F.get(F.transform(F.array(value), then), F.lit(0))


def in_steps(*steps: Step) -> Column:
    """A struct of what all the steps give. Each step is given such a struct of the steps before it; the first one gets an empty one."""
    return _after((), F.struct(), steps)


def _after(names: tuple[str, ...], known: Column, steps: tuple[Step, ...]) -> Column:
    found = steps[0](known)
    struct = F.struct(*[known[name].alias(name) for name in names], *[value.alias(name) for name, value in found.items()])
    return bound(struct, lambda it: _after((*names, *found), it, steps[1:])) if steps[1:] else struct

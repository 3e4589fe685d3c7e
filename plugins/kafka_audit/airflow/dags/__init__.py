"""The DAGs: one module defines one kind of them; ``factory`` makes those of an installation for the DAG file that asks for them."""

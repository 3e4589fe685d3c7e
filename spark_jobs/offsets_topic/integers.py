"""SQL text of big-endian integers inside a binary column; positions count from 1, as in Spark's ``substring``."""


def unsigned(buffer: str, position: str | int, width: int) -> str:
    """SQL text of an unsigned integer of at most 7 bytes, bigint; NULL where the buffer, the position or every byte is missing."""
    return f"cast(conv(hex(substring({buffer}, {position}, {width})), 16, 10) as bigint)"


def signed(buffer: str, position: str | int, width: int) -> str:
    """SQL text of a two's complement integer of 1, 2, 4 or 8 bytes, bigint; NULL as in :func:`unsigned`."""
    if width == 8:
        return f"cast(conv(hex(substring({buffer}, {position}, 8)), 16, -10) as bigint)"
    half = 1 << (8 * width - 1)
    return f"((({unsigned(buffer, position, width)} + {half}L) & {2 * half - 1}L) - {half}L)"

"""Walks a program over a binary column inside Spark: one ``aggregate`` whose lambda is the same for every message.

Nested lambdas that mirror a layout would be the plain way, but Spark's analyser needs several passes for each level and gives up at 100.
Damaged bytes never raise: the position becomes NULL and the walk stops. Encodings: https://kafka.apache.org/protocol and KIP-482.
"""

from spark_jobs.offsets_topic.integers import signed, unsigned
from spark_jobs.offsets_topic.program import Op

_PIECES = 500  # pieces of text joined at a time: appending one to an array copies the array
_FAILED = "named_struct('pos', cast(null as int), 'ip', cast(null as int), 'stack', s.stack, 'out', s.out)"


def read(buffer: str, program: str, start: int = 3) -> str:
    """SQL of struct<pos int, ip int, stack, out array<string>>: the walk of ``program`` over ``buffer`` from byte ``start``.

    It reached the end where ip is NULL and pos is not; pos is then the position after the last byte read, and out the JSON in pieces.
    """
    # A step that reads nothing follows one that read a byte, so twice the bytes are enough steps.
    steps = f"array_repeat(0, 2 * length({buffer}) + 16)"
    # Not plain literals: Spark would take pos and ip for never NULL in what comes out, and drop every test for it.
    pos, ip = (f"if({buffer} is null, null, {number})" for number in (start, 0))
    begin = f"named_struct('pos', {pos}, 'ip', {ip}, 'stack', cast(array() as array<bigint>), 'out', cast(array() as array<string>))"
    step = _let(f"{program}[s.ip]", "i", _let(_number(buffer), "n", _do(buffer)))
    return f"aggregate({steps}, {begin}, (s, _step) -> if(s.ip is null, s, {step}))"


def uuid_text(sixteen_bytes: str) -> str:
    """SQL for a Kafka Uuid as Kafka prints it: URL-safe base64 without padding."""
    return f"replace(replace(substring(base64({sixteen_bytes}), 1, 22), '+', '-'), '/', '_')"


def _let(sql: str, name: str, body: str) -> str:
    """Evaluate ``sql`` once and use it by name: SQL expressions have no variables of their own."""
    return f"element_at(transform(array({sql}), {name} -> {body}), 1)"


def _number(buffer: str) -> str:
    """struct<pos, v bigint>: the number that the step reads, and the position after it."""
    there = "if(s.pos + {0} <= length({1}) + 1, s.pos + {0}, null)".format
    fixed = " ".join(
        f"when {width} then named_struct('pos', {there(width, buffer)}, 'v', {signed(buffer, 's.pos', width)})" for width in (1, 2, 4, 8)
    )
    return f"case i.width when 0 then named_struct('pos', s.pos, 'v', 0L) {fixed} else {_varint(buffer)} end"


def _varint(buffer: str) -> str:
    bytes_ = [unsigned(buffer, f"s.pos + {i}", 1) for i in range(5)]
    less = f"if(i.op in ({int(Op.TAGS)}, {int(Op.TAG)}, {int(Op.TAG_SIZE)}), 0L, 1L)"
    cases = ""
    for i, byte in enumerate(bytes_):
        whole = " + ".join([*(f"({bytes_[j]} - 128) * {1 << 7 * j}L" for j in range(i)), f"{byte} * {1 << 7 * i}L"])
        cases += f" when {byte} < 128 then named_struct('pos', s.pos + {i + 1}, 'v', {whole} - {less})"
    return f"case{cases} else named_struct('pos', cast(null as int), 'v', cast(null as bigint)) end"


def _do(buffer: str) -> str:
    left = f"(length({buffer}) - n.pos + 1)"
    after = "n.pos + cast(n.v as int)"
    cut = f"substring({buffer}, n.pos, cast(n.v as int))"
    quoted = f"to_json(array(cast({cut} as string)))"
    text = f"substring({quoted}, 2, length({quoted}) - 2)"
    sized = f"n.v between 0 and {left}"
    null = "i.nullable and n.v = -1"
    top, popped = "element_at(s.stack, -1)", "slice(s.stack, 1, size(s.stack) - 1)"
    version = signed(buffer, "n.pos", 2)
    integers = " ".join(
        f"when {w} then to_json(transform(array_repeat(0, cast(n.v as int)), (z, k) -> {signed(buffer, f'n.pos + k * {w}', w)}))"
        for w in (2, 4)
    )
    tag_at = f"array_position(i.tags, cast({top} as int))"
    known_tag = f"get(i.targets, cast({tag_at} as int) - 1)"

    def go(when: str, *, pos: str = "n.pos", ip: str = "s.ip + 1", stack: str = "s.stack", say: str = "''") -> str:
        piece = f"concat(i.text, {say})"
        out = f"if(size(s.out) < {_PIECES}, array_append(s.out, {piece}), array(concat(array_join(s.out, ''), {piece})))"
        return f"if({when}, named_struct('pos', {pos}, 'ip', {ip}, 'stack', {stack}, 'out', {out}), {_FAILED})"

    read = "n.pos is not null"
    push = "array_append(s.stack, {})".format
    base64 = f"""concat('"', base64({cut}), '"')"""
    uuid = f"""concat('"', {uuid_text(f"substring({buffer}, n.pos, 16)")}, '"')"""
    opened = f"""concat('{{"version":', {version})"""
    closed = f"""concat(',"undecoded_bytes":', {top} - n.pos, '}}')"""
    steps = {
        Op.STOP: go(read, ip="cast(null as int)"),
        Op.INTEGER: go(read, say="cast(n.v as string)"),
        Op.UNSIGNED: go(read, say="cast(n.v & 65535L as string)"),
        Op.STRING: f"if({null}, {go(read, say=_NULL)}, {go(f'{sized} and is_valid_utf8(cast({cut} as string))', pos=after, say=text)})",
        Op.BYTES: f"""if({null}, {go(read, say=_NULL)}, {go(sized, pos=after, say=base64)})""",
        Op.SKIP: go(sized, pos=after, say=_NULL),
        Op.UUID: go(f"{left} >= 16", pos="n.pos + 16", say=uuid),
        Op.INTEGERS: f"""if({null}, {go(read, say=_NULL)},
            {go(f"n.v between 0 and {left} div i.size", pos="n.pos + cast(n.v as int) * i.size", say=f"case i.size {integers} end")})""",
        Op.ARRAY: f"""case when {null} then {go(read, ip="i.to", say=_NULL)} when n.v = 0 then {go(read, ip="i.to", say="'[]'")}
            else {go(sized, stack=push("n.v"), say="'['")} end""",
        Op.END: f"""if({top} > 1, {go(read, ip="i.to", stack=f"array_append({popped}, {top} - 1)", say="if(i.size = 1, ',', '')")},
            {go(read, stack=popped, say="if(i.size = 1, ']', '')")})""",
        Op.OPTIONAL: f"if(n.v = i.size, {go(read, ip='i.to', say=_NULL)}, {go('n.v = 1')})",
        Op.TAGS: f"if(n.v = 0, {go(read, ip='i.to')}, {go(sized, stack=push('n.v'))})",
        Op.TAG: go(read, stack=push("n.v")),
        Op.TAG_SIZE: f"""if({tag_at} > 0, {go(sized, ip=known_tag, stack=f"array_append({popped}, n.pos + n.v)")},
            {go(sized, pos=after, ip="i.to", stack=popped)})""",
        Op.TAG_END: go(f"n.pos = {top}", ip="i.to", stack=popped),
        Op.EMBEDDED: f"""if(n.v = 0, {go(read, ip="i.to", say=_NULL)}, {go(
            f"n.v between 2 and {left} and {version} >= 0", pos="n.pos + 2", stack=push("n.pos + n.v"),
            ip=f"get(i.targets, least(cast({version} as int), size(i.targets) - 1))", say=opened)})""",
        Op.EMBEDDED_END: go(
            f"n.pos <= {top}", pos=f"cast({top} as int)", ip="i.to", stack=popped, say=closed
        ),
        Op.TEXT: go(read),
    }  # fmt: skip
    return f"case i.op {' '.join(f'when {int(op)} then {sql}' for op, sql in steps.items())} end"


_NULL = "'null'"

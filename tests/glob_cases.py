"""Globs and names that are hard to match correctly, for the matchers in Python and in Spark."""

import random
from collections.abc import Iterator

CASES = [
    ("*", "a\nb", True),
    ("*", "", True),
    ("", "", True),
    ("orders*", "orders.eu", True),
    ("orders*", "my-orders", False),
    ("a.b", "axb", False),
    ("a?c", "abc", True),
    ("?", "\n", True),
    ("?", "\N{GRINNING FACE}", True),
    ("[!a]*", "abc", False),
    ("[!a]", "\n", True),
    ("(x|y)+$", "(x|y)+$", True),
    ("x[a[b]", "x[", True),
    ("a[*]*b*", "a*\n--b", True),
    ("a[*]*b*", "ax--b", False),
    ("[[]a[]b]*", "[a]", True),
    ("[z-a]", "b", False),
    ("[!z-a]", "b", True),
    ("[a&&b]", "&", True),
    ("[]-a]", "^", True),
    ("[a-", "[a-", True),
    ("a*b*c", "abcbc", True),
    ("a*ab", "ab", False),
    ("*a*a", "a", False),
    ("a", "a\n", False),
    ("a*", "a\n", True),
    ("*a", "a\n", False),
    ("\\*", "\\x", True),
    ("[\\]*", "\\x", True),
]
"""Glob, name, and whether it matches."""

_LETTERS = "ab-[]!^\\&~|.\n0z\N{LATIN SMALL LETTER E WITH ACUTE}\N{GRINNING FACE}"


def generated(count: int) -> Iterator[tuple[str, str]]:
    """Short globs and names of few letters, so that many match; always the same ones."""
    source = random.Random(10)
    for number in range(count):
        glob = "".join(source.choice(_LETTERS + "****???") for _ in range(source.randint(0, 8)))
        name = "".join(source.choice("ab-]z") if letter in "*?" else letter for letter in glob)
        if number % 2:
            name = "".join(source.choice(_LETTERS) for _ in range(source.randint(0, 6)))
        yield glob, name

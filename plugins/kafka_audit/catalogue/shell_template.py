"""Checks where a control's command may have a placeholder, so that a quoted name there is a single word for a POSIX shell."""

import re

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_READ_DIFFERENTLY = ("`", "<<", "$'", '$"', "${", "((", "#")
"""Back-quotes, here-documents, strings with escapes, parameters, arithmetic and comments: a shell reads quotes in them by other rules."""


def takes_quoted_names(template: str) -> bool:
    """Whether every placeholder of a command stands outside of quotes and escapes, in a command that has nothing of _READ_DIFFERENTLY."""
    if PLACEHOLDER.search(template) is None:
        return True
    if any(sign in template for sign in _READ_DIFFERENTLY):
        return False
    quote, position = "", 0
    while position < len(template):
        character = template[position]
        if character == "\\" and quote != "'":
            position += 1
            if PLACEHOLDER.match(template, position):
                return False
        elif quote:
            if PLACEHOLDER.match(template, position):
                return False
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        position += 1
    return not quote

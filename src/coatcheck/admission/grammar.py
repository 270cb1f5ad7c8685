"""Pieces of HTTP's own grammar (RFC 9110, section 5.6), as regular expressions over Latin-1 text.

No white space can be matched in two ways: a text that does not fit is known not to in linear time.
"""

import re

TCHARS = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
QUOTED = r'"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"'
PARAMETERS = rf"(?:[ \t]*;(?:[ \t]*{TCHARS}=(?:{TCHARS}|{QUOTED}))?)*"

_ELEMENT = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*"|")+')


def elements(text: str) -> list[str]:
    """The elements of a comma-separated list; a comma in a quoted string separates nothing."""
    return _ELEMENT.findall(text)

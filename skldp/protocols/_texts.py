"""Limits of JSON texts from unknown senders, checked before anything is built from them."""

import json
import re
import sys

from skldp._validation._limits import MAX_DIGITS, MAX_JSON_DEPTH, MAX_JSON_LENGTH

# A string is one token. An unterminated string extends to the end of the text, so that no text is scanned twice.
_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
_LONG_NUMBER = re.compile(rf"(?<![0-9])[0-9]{{{MAX_DIGITS + 1}}}")
_SHORT_TEXT = 2**20  # the search for long numbers takes 50 ms for this number of characters


def check_text(text, what, error):
    """Return a JSON text; raise an error if it is too long or too deep, or has a number of too many digits.

    Bytes are decoded if possible. Any other type is returned unchanged; the JSON reader refuses it.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        return text
    if len(text) > MAX_JSON_LENGTH:
        raise error(f"This is not {what} of skldp: it has {len(text)} characters, and at most {MAX_JSON_LENGTH} are "
                    "read. Pass what skldp wrote, unchanged.")
    if not isinstance(text, str):
        try:
            text = text.decode(json.detect_encoding(text))
        except UnicodeDecodeError:
            return text  # not JSON; the JSON reader refuses it
    if _too_deep(text):
        raise error(f"This is not {what} of skldp: it has more than {MAX_JSON_DEPTH} nested brackets. "
                    "Pass what skldp wrote, unchanged.")
    if _has_long_number(text):
        raise error(f"This is not {what} of skldp: it has a number of more than {MAX_DIGITS} digits. "
                    "Pass what skldp wrote, unchanged.")
    return text


def _too_deep(text):
    # The depth is at most the number of opening brackets, which is many times faster to count.
    if text.count("[") + text.count("{") <= MAX_JSON_DEPTH:
        return False
    depth = 0
    for token in _TOKENS.finditer(text):
        first = text[token.start()]
        depth += (first in "[{") - (first in "]}")
        if depth > MAX_JSON_DEPTH:
            return True
    return False


def _has_long_number(text):
    # Python itself refuses integers of more than 4300 digits, unless it is configured otherwise. That is enough for a
    # long text, whose base 64 would take seconds to search.
    if len(text) > _SHORT_TEXT and 0 < sys.get_int_max_str_digits() <= 4300:
        return False
    return _LONG_NUMBER.search(text) is not None

"""Limits of JSON texts from unknown senders, checked before anything is built from them."""

import json
import re
import sys

from skldp._validation._limits import MAX_DIGITS, MAX_JSON_DEPTH, MAX_JSON_LENGTH

# Strings are skipped as a whole. A string without an end reaches to the end, so that no text is read twice.
_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
_LONG_NUMBER = re.compile(rf"(?<![0-9])[0-9]{{{MAX_DIGITS + 1}}}")
_SHORT_TEXT = 2**20  # the search for long numbers takes 50 ms for as many characters


def check_text(text, what, error):
    """Refuse a JSON text that is too long or too deep, or has a number of too many digits.

    Parameters
    ----------
    text : str or bytes
        What came from a stranger. Anything else is returned as it is, for the reader to refuse.
    what : str
        What it should be, for the error.
    error : type
        The error to raise.

    Returns
    -------
    str
        The text, decoded where it can be.
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
            return text  # no JSON, which the reader says
    if _too_deep(text):
        raise error(f"This is not {what} of skldp: it has more than {MAX_JSON_DEPTH} brackets inside each other. "
                    "Pass what skldp wrote, unchanged.")
    if _has_long_number(text):
        raise error(f"This is not {what} of skldp: it has a number of more than {MAX_DIGITS} digits. "
                    "Pass what skldp wrote, unchanged.")
    return text


def _too_deep(text):
    # Nothing is deeper than the number of its brackets, which is counted many times faster.
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
    # Python itself refuses whole numbers of more than 4300 digits, unless it was told otherwise: in a long text, whose
    # base 64 would take seconds to search, that is enough.
    if len(text) > _SHORT_TEXT and 0 < sys.get_int_max_str_digits() <= 4300:
        return False
    return _LONG_NUMBER.search(text) is not None

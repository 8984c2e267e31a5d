"""Formulas as MathML, which browsers draw themselves: a page asks no other server for anything."""

import re

from docutils.nodes import SkipNode
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
TEX = [
    # In TeX a command without braces takes one digit; the converter would take the whole number.
    (re.compile(r"(\\[dt]?frac) ?(\d)(\d)"), r"\1{\2}{\3}"),
    (re.compile(r"([\^_])(\d)(?=\d)"), r"\1{\2}"),
]
MATHML = [
    # An index belongs beside a letter with an accent, not below it.
    (re.compile(r"<munderover>\s*(<mi[^>]*>[^<]*</mi>)\s*(.*?)\s*(<mo[^>]*>[~¯ˉˆ˙]</mo>)\s*</munderover>", re.DOTALL),
     r'<msub><mover accent="true">\1\3</mover>\2</msub>'),
    # Bars are fences here, close to what they enclose and as high as a line.
    (re.compile('<mo(?: stretchy="false")?>([|∣‖])</mo>'),
     r'<mo stretchy="false" lspace="0.05em" rspace="0.05em">\1</mo>'),
    (re.compile("<mo>/</mo>"), '<mo lspace="0.05em" rspace="0.05em">/</mo>'),
    # A thin space between a function and what it is applied to, unless that is in brackets.
    (re.compile(r"<mo>&ApplyFunction;</mo>(?!\s*<mo[^>]*>[(\[⟨{])"), '<mspace width="0.1667em"></mspace>'),
]


def convert(node, as_block):
    """MathML of a node with a formula in TeX; what cannot be converted is a warning and stays TeX."""
    try:
        text = latex2mathml.tex2mathml(replaced(node.astext(), TEX), as_block=as_block)
    except MathError as error:
        LOGGER.warning("formula cannot be converted: %s (%s)", node.astext(), error, location=node)
        return None
    return replaced(text, MATHML)


def replaced(text, rules):
    """Apply pairs of a pattern and its replacement, in order."""
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def inline(self, node):
    """A formula in a line."""
    self.body.append(convert(node, False) or self.encode(node.astext()))
    raise SkipNode


def display(self, node):
    """A formula on its own."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(convert(node, True) or self.encode(node.astext()))
    self.body.append("</div>\n")
    raise SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

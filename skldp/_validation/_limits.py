"""Limits of the sizes that are read from files and messages, or built from a description.

Files and messages come from unknown senders. Each size is compared with its limit before memory is allocated, so that
a short text cannot cause the use of much memory or time. The limits are far above what a collection needs; the security
guide shows this table.
"""

# Characters of JSON text. 2**24 counts of 8 bytes in base 64 take 1.8e8, and 2**24 categories beside them 1.7e8.
MAX_JSON_LENGTH = 2**29

# Brackets inside brackets. Our deepest file, an aggregate of categories that are rows, has seven.
MAX_JSON_DEPTH = 32

# Digits of a number in JSON: the time to read an integer grows as their square. Sums have fewer than 60.
MAX_DIGITS = 1000

# Bytes of a line of a text file of reports: 2**24 bits with commas and spaces.
MAX_LINE_LENGTH = 2**26

# Bytes of all members of an npz file. Members are never compressed and never overlap, so the file is at least as long.
# Only reports of bits take more memory than their bytes in the file, by a factor of eight.
MAX_FILE_BYTES = 2**36

# Members of an npz file: a header, and at most two arrays for each cohort.
MAX_MEMBERS = 2049

# Protocols in an aggregate; they differ only in their budget.
MAX_COHORTS = 1024

# Reports in an aggregate: floats represent every integer up to this one, and there are about 2**33 people.
MAX_REPORTS = 2**53

# Columns of a record. The sums of their products are 2**24 numbers.
MAX_FEATURES = 4096

# Entries of a vector that is randomised as a whole; moments of 1,445 features. The privacy proofs of the sphere and of
# Gaussian noise subtract a bound on the effect of rounding errors from epsilon, which grows with this number.
MAX_ENTRIES = 2**20

# Levels of the grid of one value: the slack of Laplace noise grows with them.
MAX_LEVELS = 2**24

# Cells inside the bounds in which the reports of values are counted, over all columns: 128 MB of counts.
MAX_CELLS = 2**24

# Categories of a record, and bits of a report. Random integers below this are uniform to one part in 2**40.
MAX_CATEGORIES = 2**24

# Counts in an aggregate of categories, which are the cells of a block design: 2**25 counts of 8 bytes in base 64 take
# 3.6e8 characters, which leaves room for as many categories as there may be.
MAX_COUNTS = 2**25

# Labels of a response.
MAX_CLASSES = 1000

LIMITS = {
    "MAX_JSON_LENGTH": (MAX_JSON_LENGTH, "characters of a JSON text"),
    "MAX_JSON_DEPTH": (MAX_JSON_DEPTH, "brackets inside brackets in a JSON text"),
    "MAX_DIGITS": (MAX_DIGITS, "digits of a number in a JSON text"),
    "MAX_LINE_LENGTH": (MAX_LINE_LENGTH, "bytes of a line of a text file of reports; less if reports are short"),
    "MAX_FILE_BYTES": (MAX_FILE_BYTES, "bytes of an npz file, over all members"),
    "MAX_MEMBERS": (MAX_MEMBERS, "members of an npz file"),
    "MAX_COHORTS": (MAX_COHORTS, "protocols (budgets) in an aggregate"),
    "MAX_REPORTS": (MAX_REPORTS, "reports in an aggregate"),
    "MAX_FEATURES": (MAX_FEATURES, "columns of a record"),
    "MAX_ENTRIES": (MAX_ENTRIES, "entries of a vector that is randomised as a whole, moments included"),
    "MAX_LEVELS": (MAX_LEVELS, "levels of the grid of one value"),
    "MAX_CELLS": (MAX_CELLS, "cells inside the bounds in which values are counted, over all columns"),
    "MAX_CATEGORIES": (MAX_CATEGORIES, "categories of a record"),
    "MAX_COUNTS": (MAX_COUNTS, "counts in an aggregate of categories, the cells of a block design"),
    "MAX_CLASSES": (MAX_CLASSES, "labels of a response"),
}

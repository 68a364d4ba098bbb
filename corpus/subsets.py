"""SUB-1 to SUB-10: expressions, each beside the same condition in Python. `None`: the expression is an error."""

from fractions import Fraction

from layout import xxh64
from orders import Read, padded, subset_hash


def hashed(row):
    return Fraction(xxh64(row["key"]), 2**64)


def has(name, condition):
    """The condition where a sample has the attribute."""
    return lambda row: name in row and condition(row[name])


CASES = [
    ("label in 3, 5 and sharp = true", lambda row: row["label"] in (3, 5) and row["sharp"]),
    ("label==3", lambda row: row["label"] == 3), ("label != 3", lambda row: row["label"] != 3),
    ("not label=3 or label=3", lambda row: True), ("label < -0.5", lambda row: row["label"] < 0),
    ("label <= 2.5e0 and label > 15e-1", lambda row: row["label"] == 2), ("label >= 5", lambda row: row["label"] >= 5),
    ("label in (1..4, -1)", lambda row: row["label"] in (1, 2, 3, -1)), ("label not in 0..2.5", lambda row: not 0 <= row["label"] <= 2),
    ("label in 0.5..1.5", lambda row: row["label"] == 1), ("LABEL = 1", None), ("\"label\" = 1", lambda row: row["label"] == 1),
    ("label = 18446744073709551616", lambda row: False), ("label < 1e400", lambda row: True), ("label < 1e401", None),
    ("label = 'cat'", lambda row: row["label"] in (0, 2)), ("label != 'gr\\u{f6}\\xc3\\x9fe'", lambda row: row["label"] != 3),
    ("label in 'dog', 5", lambda row: row["label"] in (1, 5)), ("label = 'cow'", None), ("label < 'dog'", None), ("label = '7'", None),
    ("width is missing", lambda row: "width" not in row), ("width IS PRESENT and NOT width > 64", has("width", lambda v: v <= 64)),
    ("width > 64", None), ("width is present and width in 0..100", has("width", lambda v: v < 100)),
    ("ordinal < 10 and width is missing or ordinal = 60", lambda row: row["ordinal"] < 10 and "width" not in row or row["ordinal"] == 60),
    ("ordinal in 5..8, 190.0, 3", lambda row: row["ordinal"] in (3, 5, 6, 7, 190)), ("ordinal < 0", lambda row: False),
    ("ordinal is missing", None), ("\"ordinal\" = 3", None), ("ordinal = '3'", None),
    ("split is present and split == 'val'", has("split", lambda v: v == "val")),
    ("split is present and split in 'train', 'größe'", has("split", lambda v: v in ("train", "größe"))),
    ("split is present and split != 'val'", has("split", lambda v: v != "val")),
    ("split is present and split not in ('val')", has("split", lambda v: v != "val")),
    ("split = 'val'", None), ("split is present and split = 'nope'", None), ("split is present and split < 'val'", None),
    ("split is present and split = 1", None), ("split is missing", lambda row: "split" not in row),
    ("score is present and score < 0.125", has("score", lambda v: v < 0.125)), ("score is present and score = -9.0", has("score", lambda v: v == -9)),
    ("half <= 2.00001", lambda row: row["half"] <= 2), ("half = 0.06250001", lambda row: row["half"] == 0.0625),
    ("half < 1e9", lambda row: True), ("half in 1..2", lambda row: 1 <= row["half"] < 2), ("half > -1e300", lambda row: True),
    ("half = 'a'", None), ("when < 100000000000000000", lambda row: row["when"] < 10**17),
    ("when in 30000000000000000, 5e16", lambda row: row["when"] in (3 * 10**16, 5 * 10**16)), ("when = 'today'", None),
    ("sharp == true", lambda row: row["sharp"]), ("sharp != TRUE", lambda row: not row["sharp"]), ("sharp in false, true", lambda row: True),
    ("sharp = 1", None), ("sharp < true", None), ("sharp", None),
    ("key = 'k/007'", lambda row: row["key"] == b"k/007"), ("key starts with 'k/1'", lambda row: row["key"].startswith(b"k/1")),
    ("key contains '/00'", lambda row: b"/00" in row["key"]), ("KEY contains 'k'", None), ("key contains ''", lambda row: True),
    ("key Contains '7' and not key STARTS with 'k/1'", lambda row: b"7" in row["key"] and not row["key"].startswith(b"k/1")),
    ("label contains 'o'", lambda row: row["label"] == 1), ("label starts with 'gr\\xc3'", lambda row: row["label"] == 3),
    ("label contains 'cow'", lambda row: False), ("width contains '1'", None), ("sharp starts with 't'", None),
    ("ordinal contains '1'", None), ("key_hash starts with '0'", None), ("half contains '1'", None), ("when contains '1'", None),
    ("split is present and split starts with 'v'", has("split", lambda v: v.startswith("v"))),
    ("split is present and not split contains 'r'", has("split", lambda v: "r" not in v)),
    ("split is present and split contains 'nope'", lambda row: False), ("split contains 'val'", None), ("key contains 7", None),
    ("key contains", None), ("key starts 'k'", None), ("key not contains 'k'", None),
    ("not key starts with ''", lambda row: False), ("key in 'k/\\x3000', '\\xff'", lambda row: row["key"] == b"k/000"),
    ("key < 'k'", None), ("key = 7", None), ("key is present", None),
    ("key_hash < 0.5", lambda row: hashed(row) < Fraction(1, 2)), ("key_hash >= 0.9", lambda row: hashed(row) >= Fraction(9, 10)),
    ("key_hash in 0.25..0.5, 1", lambda row: Fraction(1, 4) <= hashed(row) < Fraction(1, 2)), ("key_hash <= 1", lambda row: True),
    ("key_hash < 0", lambda row: False), ("key_hash < 1.0000001", None), ("key_hash > -1", None), ("key_hash = 'x'", None),
    ("(" * 100 + "label = 1" + ")" * 100, lambda row: row["label"] == 1), ("(" * 101 + "label = 1" + ")" * 101, None),
    ("not " * 100 + "label = 1", lambda row: row["label"] == 1), ("not " * 101 + "label = 1", None),
    ("not (" * 50 + "label in (1)" + ")" * 50, lambda row: row["label"] == 1),
    ("label = 1 or" + "\t\r\n" * 100 + "label = 2", lambda row: row["label"] in (1, 2)),
    ("label = 1 and label = 2 or label = 3", lambda row: row["label"] == 3),
    ("label = 1 and (label = 2 or label = 1)", lambda row: row["label"] == 1),
    ("label = " + "0" * 399 + "1", lambda row: row["label"] == 1), ("label = " + "0" * 400 + "1", None),
    ("label = 1" + " " * (65536 - 9), lambda row: row["label"] == 1), ("label = 1" + " " * (65537 - 9), None),
    ("", None), ("label", None), ("label = ", None), ("label = 1 2", None), ("label = 1a", None), ("label = .5", None), ("label = 1.", None),
    ("label = +1", None), ("label = - 1", None), ("label in 4..1", None), ("label in 2..2", None), ("label in ()", None), ("label in 1,", None),
    ("(label = 1", None), ("label = 1)", None), ("label = 'a\\q'", None), ("label = 'open", None), ("label & 1", None), ("nothing = 1", None),
    ("label is absent", None), ("label == = 1", None), ("key = '\\u{110000}'", None), ("key = '\\u{d800}'", None), ("key = '\\x4'", None),
]


def select(read, condition):
    return [row["ordinal"] for row in read.rows if condition(row)]


def SINGLE(read):
    """The subset of one dataset that the orders use."""
    return "label in 0..3 or key_hash < 0.25", select(read, lambda row: 0 <= row["label"] < 3 or hashed(row) < Fraction(1, 4))


def SEVERAL(read):
    """The subset of several datasets that the orders use."""
    return "sharp = true", select(read, lambda row: row["sharp"])


OVER_SEVERAL = [
    ("ordinal in 195..215", lambda row: 195 <= row["ordinal"] < 215), ("split is present and split = 'test'", has("split", lambda v: v == "test")),
    ("split is present and split in 'val', 'größe'", has("split", lambda v: v in ("val", "größe"))), ("split is present and split = 'nope'", None),
    ("key = 'k/009'", lambda row: row["key"] == b"k/009"), ("when is missing", lambda row: "when" not in row), ("when > 0", None),
]


OF_OTHERS = {
    "valid/key-1-keyless.seg": [("key = 'a'", None), ("key starts with ''", None), ("key_hash < 0.5", None), ("ordinal < 2 or key = 'a'", None),
                                ("ordinal = 2", lambda row: row["ordinal"] == 2)],
    "valid/fil-2-lone-segment.seg": [("label is present and label = 'cat'", None), ("label is present and label = 5", has("label", lambda v: v == 5))],
    "valid/sub-8-names.seg": [("fine = 'ant'", lambda row: row["fine"] in (0, 2)), ("fine in ('größe', 5)", lambda row: row["fine"] in (1, 5)),
                              ("fine != 'ant' and fine starts with 'gr'", lambda row: row["fine"] == 1), ("fine = 'bee'", None), ("fine < 'ant'", None),
                              ("class = 'cat'", None), ("label = 'no'", None), ("day = 'monday'", None), ("width = 'wide'", None), ("width contains 'w'", None)],
    "valid/atr-3-opaque.seg": [("o4 = 1", None), ("o4 = 'a'", None), ("o4 < 1", None), ("o4 is present", lambda row: "o4" in row),
                               ("o16 is missing", lambda row: "o16" not in row), ("\"\\xff\" = 1", None)],
    "valid/cat-2-none.seg": [("category is present and category = 'a'", None), ("category is missing", lambda row: True)],
}


def subset_lines_of_others():
    return [line for path, listed in OF_OTHERS.items() for line in lines_of(Read([path]), listed)]


def subset_lines(one, both, old):
    listed = (one, CASES), (both, OVER_SEVERAL), (old, CASES[:4] + [("ordinal > 88", lambda row: row["ordinal"] > 88)])
    return [line for read, cases in listed for line in lines_of(read, cases)]


def lines_of(read, listed):
    lines = []
    for text, condition in listed:
        line = {**read.named(), **padded("expression", text)}
        if condition:
            ordinals = select(read, condition)
            line |= {"ordinals": ordinals, "hash": subset_hash(ordinals, read.n)}
        lines.append(line | ({} if condition else {"error": True}))
    return lines

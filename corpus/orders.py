"""order.md from the page alone: orders, batches, states and mixing of the valid cases, as orders.json has them."""

import json
import math
from fractions import Fraction

from cases import CASES
from layout import chain, hex64, xxh64

MASK, WINDOW = 2**64 - 1, 2**28


# ---- PLN-1 ----------------------------------------------------------------------------------------------------------

def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def key(*parts):
    h = 0
    for part in parts:
        h = mix(h ^ part)
    return h


def below(k, i, n):
    return (key(k, i) * n) >> 64


def shuffled(k, n):
    found = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(k, i, i + 1)
        found[i], found[j] = found[j], found[i]
    return found


# ---- what is read ---------------------------------------------------------------------------------------------------

class Member:
    """A dataset, or a generation of it, as an order sees it: PLN-2."""

    def __init__(self, path, generation=None):
        case = next(case for case in CASES if case.path == path)
        state, self.index = case.states[-1 if generation is None else generation], case.index
        self.n, self.chunk, self.fingerprint = state["sample_count"], self.index.shape.chunk, int(state["fingerprint"], 16)
        self.samples = self.index.samples[:self.n]
        self.lengths = [sample.stored_len for sample in self.samples]
        ends = [end for _, end in self.index.segments[:state["segment_count"]]]
        chunks, self.extents, first = sum(max(1, -(-end // self.chunk)) for end in ends), [], 0
        for count in self.index.counts[:chunks]:
            last = first + count
            alone = count > 0 and self.lengths[last - 1] >= 8 * self.chunk
            for a, b in ((first, last - 1), (last - 1, last)) if alone else ((first, last),):
                self.extents += [(at, min(at + 65536, b)) for at in range(a, b, 65536)]
            first = last
        assert first == self.n


class Read:
    """PLN-8: one dataset, or several as one; `rows` are what an expression sees of the samples."""

    def __init__(self, paths, generation=None):
        self.paths, self.generation, self.extents, self.units, self.rows, first = paths, generation, [], [], [], 0
        self.members = [Member(path, generation) for path in paths]
        for m, member in enumerate(self.members):
            self.extents += [(first + a, first + b, (m, j)) for j, (a, b) in enumerate(member.extents)]
            self.rows += [{**sample.attributes, "key": sample.key, "ordinal": first + i} for i, sample in enumerate(member.samples)]
            first += member.n
        self.n, self.stored = first, sum(sum(member.lengths) for member in self.members)
        self.chunk = max(member.chunk for member in self.members)
        links = [(member.fingerprint, member.n) for member in self.members]
        self.fingerprint = links[0][0] if len(links) == 1 else chain(links)

    def named(self):
        return {"members": self.paths, **({} if self.generation is None else {"generation": self.generation})}


def subset_hash(ordinals, n):
    """SUB-1."""
    bits = bytearray(-(-n // 8))
    for i in ordinals:
        bits[i // 8] |= 2 ** (i % 8)
    return hex64(xxh64(bytes(bits), n))


# ---- orders ---------------------------------------------------------------------------------------------------------

class Order:
    """An epoch's ordinals by position: PLN-3 to PLN-9. `subset` is (expression, ordinals)."""

    def __init__(self, read, order="auto", seed=0, epoch=0, lanes=None, group=1, window=WINDOW, subset=None):
        self.asked = {"order": order, "seed": seed, "epoch": epoch}
        if order == "chunked" or lanes or group > 1:
            self.asked |= {"lanes": lanes, "group": group, "window": window}
        if subset:
            self.asked["subset"] = subset[0]
        chosen = list(range(read.n)) if subset is None else subset[1]
        if order == "auto":
            order = "full" if read.stored >= 65536 * read.n else "chunked"
        self.read, self.order, self.seed, self.epoch, self.n = read, order, seed, epoch, len(chosen)
        self.subset = None if subset is None else subset_hash(chosen, read.n)
        self.lanes = self.group = None
        k = key(seed, epoch, read.fingerprint)
        if order == "sequential":
            self.indices = list(range(self.n))
        elif order == "full":
            self.indices = full(k, self.n)
        else:
            self.chunked(k, chosen, lanes, group, window)
        self.ordinals = [chosen[i] for i in self.indices]

    def chunked(self, k, chosen, lanes, group, window):
        extents, units, at = [], {}, 0
        for a, b, (member, number) in self.read.extents:
            size = sum(a <= ordinal < b for ordinal in chosen)
            if size:
                units.setdefault((member, number // group), []).append(len(extents))
                extents.append((at, at + size))
                at += size
        units = list(units.values())
        if lanes is None:
            m = max(1, window // max(self.read.chunk, -(-self.read.stored // len(self.read.extents))))
            lanes = next(one for one in (768, 384, 192, 96, 48, 24, 12, 6, 3, 2, 1) if one == 1 or one <= min(m, len(units) // 2))
        self.lanes, self.group = lanes, group
        ring = [e for unit in shuffled(key(k, 1), len(units)) for e in units[unit]]
        self.indices = walk(k, extents, ring, self.n, lanes)

    def expect(self):
        return {"order": self.order, "lanes": self.lanes, "group": self.group, "fingerprint": hex64(self.read.fingerprint),
                "subset_hash": self.subset, "n": self.n}

    def line(self, ordinals=True):
        return {**self.read.named(), **self.asked, "expect": {**self.expect(), **({"ordinals": self.ordinals} if ordinals else {})}}

    def state(self, position):
        """STA-1."""
        return {"grainstore_state": 1, "fingerprint": hex64(self.read.fingerprint), "subset": self.subset, "seed": self.seed,
                "epoch": self.epoch, "order": self.order, "lanes": self.lanes, "group": self.group, "mixture": None,
                "position": position}


def full(k, n):
    """PLN-4."""
    b = 6
    while 2**b < n:
        b += 2
    h, found = b // 2, []
    for p in range(n):
        x = p
        while True:
            left, right = x >> h, x % 2**h
            for i in range(8):
                left, right = right, left ^ (mix(key(k, 6, i) ^ right) >> (64 - h))
            x = left << h | right
            if x < n:
                break
        found.append(x)
    return found


def walk(k, extents, ring, n, lanes):
    """PLN-5: every lane's places are listed, cut into pieces, and dealt out in turn."""
    places = [(e, i) for i, e in enumerate(ring) for _ in range(extents[e][1] - extents[e][0])]  # of the ring, by u
    start, at = [], 0
    for e in ring:
        start.append(at)
        at += extents[e][1] - extents[e][0]
    turn, q, x, queues = below(key(k, 2), 0, n), n // lanes, n % lanes, []
    for lane in range(lanes):
        a = lane * q + min(lane, x)
        b = a + q + (1 if lane < x else 0)
        begin = a + below(key(k, 3), lane, b - a)
        pieces = {}
        for t in range(a, b):
            u = (t + turn) % n
            pieces.setdefault((places[u], t - u, t < begin), []).append(t)
        found = {}
        for ((e, i), shift, _), ts in pieces.items():
            low, (first, end) = ts[0], extents[e]
            for t, drawn in zip(ts, shuffled(key(k, 4, low), len(ts))):
                w = low - shift - start[i] + drawn
                found[t] = first + (w + below(key(k, 5), e, end - first)) % (end - first)
        queues.append([found[t] for t in [*range(begin, b), *range(a, begin)]])
    return [queues[p % lanes][p // lanes] for p in range(n)]


# ---- ranks, mixing --------------------------------------------------------------------------------------------------

def batches(order, world, batch_size, tail, begin=0):
    """RNK-1 to RNK-3: for each rank its batches, as ordinals; and where the epoch stands after each."""
    n, size = order.n, world * batch_size
    count = (n - begin) // size
    if tail != "drop" and (n - begin) % size:
        count += 1
    ranks, after = [[] for _ in range(world)], [begin]
    for k in range(count):
        positions = list(range(begin + k * size, begin + (k + 1) * size))
        if tail != "pad":
            positions = [p for p in positions if p < n]
        q, x = divmod(len(positions), world)
        for r in range(world):
            first = r * q + min(r, x)
            own = positions[first:first + q + (r < x)] if order.order == "sequential" else [p for p in positions if p % world == r]
            ranks[r].append([order.ordinals[p % n] for p in own])
        after.append(min(n, begin + (k + 1) * size))
    return {**order.line(False), "world": world, "batch_size": batch_size, "tail": tail, "begin": begin, "ranks": ranks,
            "positions_after": after}


def mixing(order, size, name="label", looks=11):
    """MIX-1, MIX-2."""
    n, report = order.n, {}
    values = [order.read.rows[ordinal].get(name) for ordinal in order.ordinals]
    groups = {"parts": [r * 256 // n for r in order.indices], "classes": values}
    for batch_count in (1, 16):
        m = min(batch_count * size, n)
        for of, group in groups.items():
            found = []
            for j in range(1, looks + 1):
                at = size * min(j * (n // size) // (looks + 1), (n - m) // size)
                found.append(len(set(group[at:at + m]) - {None}))
            sizes = [group.count(one) for one in set(group) - {None}]
            full_shuffle = sum((1 - Fraction(math.comb(n - s, m), math.comb(n, m)) for s in sizes), Fraction())
            report[f"{of}_{batch_count}"] = [float(Fraction(sum(found), looks)), float(full_shuffle)]
    return {**order.line(False), "batch_size": size, "class": name, "mixing": report}


def padded(name, text):
    """Text of JSON; many spaces at its end are written as their number."""
    short = text.rstrip(" ")
    spaces = len(text) - len(short)
    return {name: short, "spaces": spaces} if spaces > 100 else {name: text}


# ---- the cases ------------------------------------------------------------------------------------------------------

MANY, OTHER, LARGE = "valid/pln-2-extents.grain", "valid/pln-8-member.grain", "valid/pln-6-large.seg"


def make():
    from subsets import SEVERAL, SINGLE, subset_lines, subset_lines_of_others
    one, both, old = Read([MANY]), Read([MANY, OTHER, MANY]), Read([MANY], 0)
    small = [Read([path]) for path in ("valid/fil-2-one-sample.seg", "valid/gen-1-generations.grain", LARGE,
                                       "valid/chk-3-large-samples.seg", "valid/chk-1-zero-length.seg", "valid/smp-2-alignment-1.seg")]
    several = [Read(["valid/gen-1-generations.grain"], g) for g in (0, 1)]
    found = [Order(read, name, seed, epoch) for read in [one, old, both, *small, *several] for name in ("full", "chunked", "sequential", "auto")
             for seed, epoch in ((0, 0), (2**64 - 1, 7))]
    for read in (one, both, small[3]):
        for lanes in (1, 2, 5, read.n):
            for group in (1, 2, 3, 8, 2**32 - 1):
                found.append(Order(read, "chunked", 11, lanes, lanes, group))
        for window in (read.chunk, 3 * read.chunk, 2**20):
            for group in (1, 4):
                found.append(Order(read, "chunked", 5, 1, None, group, window))
    chosen = [(read, (text, subset)) for read, text, subset in
              ((one, *SINGLE(one)), (both, *SEVERAL(both)))]
    for read, subset in chosen:
        found += [Order(read, name, 3, 2, subset=subset) for name in ("full", "sequential", "auto")]
        found += [Order(read, "chunked", 3, 2, lanes, group, window, subset) for lanes in (None, 1, 4) for group in (1, 3)
                  for window in (2**13, WINDOW)]
    dealt = [batches(order, world, size, tail, begin)
             for order in (Order(one, "chunked", 1, 1, 6), Order(one, "sequential"), Order(one, "full", 9, 9, subset=chosen[0][1]))
             for world, size, begin in ((1, 64, 0), (3, 16, 0), (3, 16, 7), (4, 1000, 0)) for tail in ("drop", "short", "pad")]
    mixed = [mixing(order, size) for order in (Order(one, "chunked", 4, 0, 12), Order(one, "chunked", 4, 0, 12, 4), Order(one, "sequential"),
                                               Order(both, "full", 1), Order(one, "full", 2, subset=chosen[0][1]))
             for size in (4, 32)] + [mixing(Order(one, "chunked", 4, 0, 6), 16, "split"), mixing(Order(one, "full", 4), 16, "sharp")]
    return {"vectors": vectors(), "orders": [order.line() for order in found], "batches": dealt, "mixing": mixed,
            "subsets": subset_lines(one, both, old) + subset_lines_of_others(), "states": states(one, chosen[0][1]), "refused": refused(one, both)}


def refused(one, both):
    """Epochs and lists of datasets that are an error."""
    def epoch(read, about, **asked):
        return {**read.named(), "about": about, "order": "chunked", **asked}

    def several(other, about):
        return {"members": ["valid/smp-2-alignment-1.seg", "valid/" + other], "about": about, "order": "full"}

    dealt = {"world": 2, "batch_size": 4, "tail": "short", "begin": 0}
    return [epoch(one, "no lanes (PLN-5)", lanes=0), epoch(one, "more lanes than samples (PLN-5)", lanes=one.n + 1),
            epoch(one, "a group of no extents (PLN-5)", group=0), epoch(one, "a group of 2^32 extents (PLN-5)", group=2**32),
            {**epoch(one, "a padded batch larger than the epoch and 2^24 (RNK-3)"), **dealt, "batch_size": 2**24, "tail": "pad"},
            {**epoch(one, "a begin after the end (section 3)"), **dealt, "begin": one.n + 1},
            epoch(one, "a window smaller than a chunk (PLN-7)", window=4095),
            epoch(both, "a window smaller than the largest chunk (PLN-7)", window=8191),
            epoch(one, "more lanes than samples of the subset (PLN-9)", subset="ordinal < 5", lanes=6),
            epoch(one, "a subset of no samples (PLN-9)", subset="ordinal < 0"),
            several("key-1-lengths.seg", "one with keys and one without (PLN-8)"),
            several("fil-2-lone-segment.seg", "other attributes (PLN-8)"), several("fld-1-columns.seg", "other fields (PLN-8)"),
            {"members": [MANY, "valid/pln-8-other-classes.seg"], "about": "other class_names (PLN-8)", "order": "full"},
            {"members": ["valid/sub-8-names.seg", "valid/pln-8-other-names.seg"], "about": "other names of numbers (PLN-8)", "order": "full"}]


def vectors():
    hashed = [b"a", b"k/000", b"\xff\x00", b"x" * 100]
    return {"mix": [[hex64(x), hex64(mix(x))] for x in (0, 1, 2**63, MASK)], "key": [[[1, 2, 3], hex64(key(1, 2, 3))], [[2**64 - 1], hex64(key(2**64 - 1))]],
            "below": [[7, 3, 100, below(7, 3, 100)], [MASK, 0, 2**40, below(MASK, 0, 2**40)]],
            "shuffled": [[7, 5, shuffled(7, 5)], [0, 1, shuffled(0, 1)], [1, 12, shuffled(1, 12)]],
            "key_hash": [[one.hex(), hex64(xxh64(one)), float(Fraction(xxh64(one), 2**64))] for one in hashed]}


def states(read, subset):
    """STA-1, STA-2. Each: the text, what resuming an epoch of these options gives: ok (and its ordinals from there), error
    (not a state, or one of another epoch) or newer."""
    order, lines = Order(read, "chunked", 6, 2, 6, 2), []
    plain, with_subset, whole = order.state(48), Order(read, "full", 6, 2, subset=subset), Order(read, "sequential", 6, 2)

    def add(text, result, about, of=order, **asked):
        asked = {**of.asked, **asked}
        for name in [name for name, value in asked.items() if value == "absent"]:
            del asked[name]
        text = text if isinstance(text, str) else json.dumps(text)
        expect = {"result": result, **({"ordinals": of.ordinals[json.loads(text)["position"]:]} if result == "ok" else {})}
        lines.append({**read.named(), **asked, **padded("state", text), "about": about, "expect": expect})

    absent = {"order": "auto", "lanes": "absent", "group": "absent", "window": "absent"}
    add(plain, "ok", "its own epoch")
    add(plain, "ok", "order, lanes and group of the state", **absent)
    add(dict(reversed(plain.items())), "ok", "members in another order")
    add(" \n" + json.dumps(plain, indent=3) + "\r\n\t", "ok", "white space")
    add(order.state(0), "ok", "at the start")
    add(order.state(read.n), "ok", "at the end")
    add(with_subset.state(9), "ok", "of a subset", with_subset)
    add(whole.state(9), "ok", "sequential: no lanes, no group", whole, order="auto")
    add(plain, "error", "another number of lanes", lanes=12)
    add(plain, "error", "another group", group=3)
    add(plain, "error", "another seed", seed=7)
    add(plain, "error", "another epoch", epoch=3)
    add(plain, "error", "another order", order="full", lanes="absent", group="absent", window="absent")
    add(plain, "error", "a subset that the state does not have", subset=subset[0])
    add(with_subset.state(9), "error", "no subset", whole, order="full")
    add({**plain, "fingerprint": "0123456789abcdef"}, "error", "another dataset")
    for name, value in (("position", read.n + 1), ("lanes", 0), ("lanes", read.n + 1)):
        add({**plain, name: value}, "error", f"{name} out of range: {value}", lanes="absent")
    for name in plain:
        add({other: value for other, value in plain.items() if other != name}, "error", f"no member {name}")
    add({**plain, "more": 1}, "error", "a member that the page does not name")
    add(json.dumps(plain)[:-1] + ', "seed": 6}', "error", "a member twice")
    for name, value in (("seed", -1), ("seed", 2**64), ("epoch", 1.5), ("position", "48"), ("order", "auto"), ("order", "random"),
                        ("lanes", None), ("group", None), ("group", 0), ("group", 2**32), ("fingerprint", "0123456789ABCDEF"),
                        ("fingerprint", "123"), ("subset", "none"), ("grainstore_state", 0), ("grainstore_state", "1")):
        add({**plain, name: value}, "error", f"{name} is {value!r}")
    add({**with_subset.state(9), "lanes": 3}, "error", "lanes of full", with_subset)
    add({**whole.state(9), "group": 1}, "error", "a group of sequential", whole)
    for text in ("", "null", "[]", json.dumps(plain) + "x", json.dumps(plain).replace('"epoch": 2', '"epoch": 02'),
                 json.dumps(plain).replace('"epoch": 2', '"epoch": -0')):
        add(text, "error", "not such a JSON document")
    add(json.dumps(plain) + " " * (2**20 - len(json.dumps(plain))), "ok", "2^20 bytes")
    add(json.dumps(plain) + " " * (2**20 + 1 - len(json.dumps(plain))), "error", "more than 2^20 bytes")
    add({"grainstore_state": 2, "later": []}, "newer", "a later version, whatever else it has")
    add({**plain, "mixture": {"weights": [1, 2]}}, "newer", "a mixture")
    return lines

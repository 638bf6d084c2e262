"""Clauses: how probably a row like a path satisfies one, and which paths may.

The machine code of `estimate`, whose docstring tells what is computed. A clause comes in steps (`programs`), its leaves
as tables: slots x (bins and absent), the share of each that satisfies the leaf. All groups of a question are computed
in one call, as `weighing` has their slots and paths.
"""

from __future__ import annotations

import numpy as np

from synopsis.query import contents, slices, vectors, weighing
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes
from synopsis.sketch.tilts import Tilts


@compiled
def _held(
    steps: Integers, tables: Floats, rows: Integers, codes: Codes, column: int, stratum: int, stack: Floats
) -> float:
    """How probably a row like a path satisfies a clause (`programs`), bins being independent within it."""
    top = 0
    for step in steps:
        if step >= 0:
            stack[top] = tables[step, stratum, codes[rows[step], column]]
            top += 1
            continue
        parts = (-step - 1) >> 1
        some, product = (-step - 1) & 1 == 0, 1.0
        for part in range(top - parts, top):
            product *= stack[part] if some else 1.0 - stack[part]
        top -= parts
        stack[top] = product if some else 1.0 - product
        top += 1
    return float(stack[0])


@compiled
def probabilities(
    steps: Integers, tables: Floats, rows: Integers, codes: Codes, column: Positions, stratum: Positions
) -> Floats:
    """Paths: how probably a row like it satisfies a clause.

    `tables` are leaves x strata x (bins and absent), `rows` say where the codes of their features stand.
    """
    held, stack = np.empty(column.size), np.empty(steps.size)
    for path in range(column.size):
        held[path] = _held(steps, tables, rows, codes, column[path], stratum[path], stack)
    return held


@compiled
def _openness(steps: Integers, tables: Floats, rows: Integers, codes: Codes, whole: Positions, real: Floats) -> None:
    """Live paths: how far a row's being selected is open, and how far that hangs on two open questions at once."""
    p, a, j = np.empty(steps.size), np.empty(steps.size), np.empty(steps.size)
    for path in range(whole.shape[1]):
        column, stratum, top = whole[1, path], whole[2, path], 0
        if real[1, path] == 1.0:  # all of it is settled, as it is of most
            real[3, path], real[4, path] = 0.0, 0.0
            continue
        for step in steps:
            if step >= 0:
                share = tables[step, stratum, codes[rows[step], column]]
                share = min(max(share, 0.0), 1.0)
                p[top], a[top], j[top] = share, np.sqrt(share * (1.0 - share)) if 0.0 < share < 1.0 else 0.0, 0.0
                top += 1
                continue
            parts = (-step - 1) >> 1
            some = (-step - 1) & 1 == 0
            held, one, two = 1.0, 0.0, 0.0
            for part in range(top - parts, top):
                own = p[part] if some else 1.0 - p[part]
                two = two * own + held * j[part] + one * a[part]
                one = one * own + held * a[part]
                held *= own
            top -= parts
            p[top], a[top], j[top] = held if some else 1.0 - held, one, two
            top += 1
        real[3, path], real[4, path] = a[0], j[0]


@compiled
def alive(
    steps: Integers,
    tables: Floats,
    rows: Integers,
    demanded: Integers,
    codes: Codes,
    which: Positions,
    column: Positions,
    stratum: Positions,
    weight: Floats,
    offset: Integers,
) -> tuple[Positions, Floats, Integers, Floats]:
    """Those of some paths that may satisfy the clause: which they are, column and slot; then of each

    weight, probability, mass, and how far being selected is open, once and twice. Then where those of groups begin, and
    what they are worth.
    Most paths end at a leaf that is `demanded` of all.
    """
    probability, stack = np.empty(column.size), np.empty(steps.size)
    # What was demanded last is new where these paths are those of a wider clause.
    screen = demanded[-1] if demanded.size else 0
    own, table = codes[rows[screen] if rows.size else 0], tables[screen] if rows.size else np.empty((0, 0))
    is_product = 0 < demanded.size == rows.size and steps.size <= rows.size + 1  # nothing but leaves in an AND
    if is_product:  # as most clauses are: no fork, which the processor would guess wrong
        for path in range(column.size):
            probability[path] = tables[0, stratum[path], codes[rows[0], column[path]]]
        for leaf in range(1, tables.shape[0]):
            own, table = codes[rows[leaf]], tables[leaf]
            for path in range(column.size):
                probability[path] *= table[stratum[path], own[column[path]]]
    for path in range(column.size if not is_product else 0):
        where, number, held = column[path], stratum[path], 1.0
        if demanded.size:
            held = table[number, own[where]]
            for turn in range(demanded.size - 1):
                if held == 0.0:
                    break
                held = tables[demanded[turn], number, codes[rows[demanded[turn]], where]]
        probability[path] = _held(steps, tables, rows, codes, where, number, stack) if held != 0.0 else 0.0
    living, size, begins = np.empty(column.size, np.int64), 0, np.zeros(offset.size, np.int64)
    for group in range(offset.size - 1):
        for path in range(offset[group], offset[group + 1]):
            living[size] = path
            size += probability[path] != 0.0
        begins[group + 1] = size
    whole, real = np.empty((3, size), np.int32), np.empty((5, size))
    for at in range(size):
        path = living[at]
        held = probability[path]
        whole[0, at], whole[1, at], whole[2, at] = which[path], column[path], stratum[path]
        real[0, at], real[1, at], real[2, at] = weight[path], held, weight[path] * held
    _openness(steps, tables, rows, codes, whole, real)
    return whole, real, begins, weighing.worths(real[2], begins)


@compiled
def lumps(
    cuts: Floats,
    tables: Floats,
    leaf_features: Integers,
    features: Integers,
    mass: Floats,
    sizes: Integers,
    starts: Codes,
    stops: Codes,
    tilt: Tilts,
    stratum: Integers,
    codes: Codes,
    column: Positions,
    slot: Positions,
    weight: Floats,
    worth: Floats,
) -> Floats:
    """Ends of the condition's ranges x live paths: rows that are on either side of an end, nobody knows."""
    found = np.empty((cuts.shape[0], column.size))
    for cut in range(cuts.shape[0]):
        leaf = int(cuts[cut, 0])
        feature = leaf_features[leaf]
        row = vectors.row(features, feature)
        axis = mass[feature, : sizes[feature] + 1]
        open_part = slices.between(starts[row], stops[row], tilt[row], stratum, axis, cuts[cut, 1], cuts[cut, 2])
        for number in range(open_part.shape[0]):
            for each in range(open_part.shape[1]):
                open_part[number, each] = cuts[cut, 3] * open_part[number, each]
        amount = contents.lumped(open_part, tables[leaf], codes[row], column, slot, weight, worth)
        for path in range(column.size):
            found[cut, path] = amount[path]
    return found

"""Sets: how many entities, cells and bins there are, who is here and there, and whether one is here at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.query.test_evaluate import WEATHER
from tests.query.test_paths import PLAIN
from tests.query.test_whereabouts import TRACKS

from synopsis.core.errors import BadQuery, NotKept, UnknownFeature
from synopsis.grid import geohash
from synopsis.query.evaluate import asked_of
from synopsis.query.relation import Relation
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.testing.members import members_of

DAY_US = 86_400_000_000
COUNT, ENTITIES = 20_000, 900
FEATURES = ("speed",)
RANDOM = np.random.default_rng(8)
LATITUDE, LONGITUDE = RANDOM.uniform(35.0, 60.0, COUNT), RANDOM.uniform(-10.0, 30.0, COUNT)
INSTANTS = RANDOM.integers(0, 120 * DAY_US, COUNT)
#: Most stay on one side of the meridian of Greenwich.
VEHICLE = np.where(RANDOM.random(COUNT) < 0.9, RANDOM.integers(0, 400, COUNT) * 2 + (LONGITUDE < 0), 800)
VEHICLE = np.where(VEHICLE == 800, RANDOM.integers(800, ENTITIES, COUNT), VEHICLE)
CELLS = np.array([geohash.to_text(geohash.encode(LATITUDE, LONGITUDE, 20), 4)]).reshape(-1)
STRANDS = Strands.of(Layout(FEATURES, 20, "1d"), LATITUDE, LONGITUDE, INSTANTS, RANDOM.normal(size=(1, COUNT)))
NAMES = [f"v{each}" for each in VEHICLE]
SPANS = Layout((), 10, "1mo")
MEMBERS = members_of(SPANS, LATITUDE, LONGITUDE, INSTANTS, NAMES)
WHOLE = Relation(STRANDS, members=MEMBERS)
MONTH = INSTANTS.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)


def asked(text: str, relation: Relation = WHOLE, **options):
    return asked_of(relation, text, **options)


def distinct(which: np.ndarray) -> set[int]:
    return set(VEHICLE[which].tolist())


def starts(prefix: str) -> np.ndarray:
    return np.char.startswith(CELLS, prefix)


# --- entities ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "which"),
    [
        ("location LIKE '%'", np.ones(COUNT, bool)),
        ("location LIKE 'u%'", starts("u")),
        ("location LIKE 'u0%' OR location LIKE 'ez%'", starts("u0") | starts("ez")),
        ("location LIKE 'u%' AND time >= '1970-02-01' AND time < '1970-03-01'", starts("u") & (MONTH == 1)),
        ("location LIKE 'zz%'", starts("zz")),
    ],
)
def test_entities_of_whole_spans_are_counted(where: str, which: np.ndarray) -> None:
    value = asked(f"SELECT CARDINALITY(vehicle) AS n WHERE {where}")["n"]
    assert value.low == value.estimate == value.high == len(distinct(which))
    assert value.guarantee == "p95"


def test_more_entities_than_a_sample_holds_are_counted_within_their_interval() -> None:
    many = members_of(SPANS, LATITUDE, LONGITUDE, INSTANTS, [f"w{at // 3}" for at in range(COUNT)])
    value = asked("SELECT CARDINALITY(vehicle) AS n", Relation(STRANDS, members=many))["n"]
    truth = -(-COUNT // 3)
    assert value.low < value.estimate < value.high
    assert value.low <= truth <= value.high
    assert abs(value.estimate - truth) / truth < 0.08


def test_a_scope_that_cuts_spans_lies_between_those_inside_and_those_touched() -> None:
    value = asked("SELECT CARDINALITY(vehicle) AS n WHERE BOX(40, 1, 52, 20) AND time < '1970-02-10'")["n"]
    truth = len(distinct(
        (LATITUDE >= 40) & (LATITUDE <= 52) & (LONGITUDE >= 1) & (LONGITUDE <= 20) & (INSTANTS < 40 * DAY_US)
    ))  # fmt: skip
    assert value.low < value.high
    assert value.low <= truth <= value.high
    assert value.low <= value.estimate <= value.high


def test_who_reports_often_is_thought_to_be_seen_in_a_part_of_the_time() -> None:
    """Most vehicles have a row on most days: on one of them nearly all are there, not a thirtieth."""
    which = VEHICLE < 60
    names = [name for name, own in zip(NAMES, which, strict=True) if own]
    few = members_of(Layout((), 5, "1mo"), LATITUDE[which], LONGITUDE[which], INSTANTS[which], names)
    for where, own in (
        ("time < '1970-01-11'", INSTANTS < 10 * DAY_US),
        ("time < '1970-02-05'", INSTANTS < 35 * DAY_US),
    ):
        value = asked(f"SELECT CARDINALITY(vehicle) AS n WHERE {where}", replace(WHOLE, members=few))["n"]
        truth = len(distinct(which & own))
        assert value.low <= truth <= value.high
        assert value.estimate == pytest.approx(truth, rel=0.25)


def test_a_yes_of_a_scope_that_cuts_spans_says_so() -> None:
    whole, cut = (asked(f"SELECT CONTAINS('v1') WHERE {where}") for where in ("location LIKE 'u0%'", "lat > 47.1"))
    assert "cuts" not in whole.notes[0]
    assert "of entities not there in the spans that the scope cuts" in cut.notes[0]


def test_entities_are_counted_by_group_beside_other_statistics() -> None:
    answer = asked(
        "SELECT BUCKET('1mo') AS month, CELL(1) AS cell, COUNT(*) AS rows, CARDINALITY(vehicle) AS n, "
        "CARDINALITY(vehicle) FILTER (WHERE location LIKE 'u0%') AS some "
        "GROUP BY month, cell HAVING CARDINALITY(vehicle) > 10 ORDER BY CARDINALITY(vehicle) DESC, month, cell"
    )
    found = {(np.datetime64(row["month"].replace(tzinfo=None), "M").astype(int), row["cell"]): row for row in answer}
    truth = {(month, cell): distinct((month == MONTH) & starts(cell)) for month in np.unique(MONTH) for cell in "eguds"}
    assert set(found) == {key for key, vehicles in truth.items() if len(vehicles) > 10}
    for (month, cell), row in found.items():
        assert row["n"].estimate == len(truth[month, cell])
        assert row["some"].estimate == len(distinct((month == MONTH) & starts("u0"))) * (cell == "u")
    counts = [row["n"].estimate for row in answer]
    assert counts == sorted(counts, reverse=True)


def test_entities_in_common_and_in_one_scope_only_are_those_of_the_rows() -> None:
    east, west, north = starts("u"), starts("e") | starts("g"), LATITUDE >= 45
    answer = asked(
        "SELECT COMMON(vehicle, location LIKE 'u%', location IN ('e', 'g')) AS both, "
        "ONLY(vehicle, location LIKE 'u%', location IN ('e', 'g')) AS east, "
        "ONLY(vehicle, location IN ('e', 'g'), location LIKE 'u%', location LIKE 's%') AS west, "
        "COMMON(entity, lat >= 45, location LIKE 'u%', time < '1970-02-20') AS cut"
    )
    south = starts("s")
    assert answer["both"].estimate == len(distinct(east) & distinct(west))
    assert answer["east"].estimate == len(distinct(east) - distinct(west))
    assert answer["west"].estimate == len(distinct(west) - distinct(east) - distinct(south))
    truth = len(distinct(north) & distinct(east) & distinct(INSTANTS < 50 * DAY_US))
    assert answer["cut"].low <= truth <= answer["cut"].high
    assert answer["cut"].low < answer["cut"].high


def test_where_holds_in_every_scope_of_a_set() -> None:
    within = asked("SELECT COMMON(vehicle, location LIKE 'u%', location LIKE 'g%') AS n WHERE time < '1970-02-01'")
    january = MONTH == 0
    assert within["n"].estimate == len(distinct(january & starts("u")) & distinct(january & starts("g")))


def test_an_entity_that_was_there_is_always_found_and_few_others() -> None:
    present = sorted(distinct(starts("u0")))
    for vehicle in present[::9]:
        value = asked(f"SELECT CONTAINS('v{vehicle}') AS c WHERE location LIKE 'u0%'")["c"]
        assert (value.estimate, value.low, value.high, value.guarantee) == (1, 0, 1, "certain")
    answers = [asked(f"SELECT CONTAINS(vehicle = 'nobody {at}') AS c") for at in range(300)]
    assert sum(answer["c"].estimate for answer in answers) <= 5
    absent = next(answer["c"] for answer in answers if answer["c"].estimate == 0)
    assert (absent.low, absent.high, absent.guarantee) == (0, 0, "certain")
    assert "a yes is wrong for 0." in answers[0].notes[0]


def test_json_asks_for_sets_too() -> None:
    plain = {
        "select": [
            {"cardinality": "vehicle", "as": "n"},
            {"contains": ["vehicle", "v1"], "as": "one"},
            {"only": ["vehicle", {"location": "u"}, {"location": "g"}], "as": "only"},
        ]
    }
    in_sql = asked("SELECT CARDINALITY(vehicle) AS n, CONTAINS(vehicle = 'v1') AS one, "
                   "ONLY(vehicle, location LIKE 'u%', location LIKE 'g%') AS only")  # fmt: skip
    in_json = asked(plain)
    assert [in_json[name] for name in ("n", "one", "only")] == [in_sql[name] for name in ("n", "one", "only")]


# --- cells, bins and days ---------------------------------------------------------------------------------------------


def test_cells_and_buckets_with_rows_are_counted_exactly() -> None:
    answer = asked(
        "SELECT CARDINALITY(CELL(4)) AS cells, CARDINALITY(location) AS same, CARDINALITY(BUCKET('1d')) AS d"
    )
    assert answer["cells"].estimate == answer["same"].estimate == np.unique(CELLS).size
    assert answer["d"].estimate == np.unique(INSTANTS // DAY_US).size
    assert {answer[name].guarantee for name in ("cells", "same", "d")} == {"exact"}


def test_cells_and_days_are_counted_within_coarser_groups() -> None:
    answer = asked(
        "SELECT CELL(1) AS c, CARDINALITY(CELL(3)) AS n, CARDINALITY(CELL(3), BUCKET('1d')) AS both GROUP BY c"
    )
    for row in answer:
        here = starts(row["c"])
        threes = np.array([cell[:3] for cell in CELLS[here]])
        assert row["n"].estimate == np.unique(threes).size
        assert row["both"].estimate == len(set(zip(threes, INSTANTS[here] // DAY_US, strict=True)))
    months = asked("SELECT BUCKET('1mo') AS m, CARDINALITY(BUCKET('1d')) AS days GROUP BY m")
    assert [row["days"].estimate for row in months] == [31, 28, 31, 30]


def test_bins_of_features_are_counted_within_their_interval() -> None:
    for where in ("temp > -100", "temp > 15", "temp > 1000"):
        truth = PLAIN.truth("count(DISTINCT floor(temp / 5))", where)[0][0]
        value = PLAIN.query(f"SELECT CARDINALITY(BIN(temp, 5)) AS n WHERE {where}")["n"]
        assert value.low <= truth <= value.high
    value = PLAIN.query("SELECT CARDINALITY(temp) AS n, CARDINALITY(BIN(temp)) AS same")
    assert value["n"] == value["same"]


def test_members_count_the_cells_of_moving_objects_that_are_finer_than_those_kept() -> None:
    data = TRACKS["dateline"]
    whole = Relation(Strands.empty(data.layout), data.summary)
    with pytest.raises(NotKept, match=r"CELL\(9\) is finer than what this sketch keeps; ask for coarser ones"):
        asked("SELECT CARDINALITY(CELL(9))", whole)
    value = asked("SELECT CARDINALITY(CELL(4)) AS n", replace(whole, members=MEMBERS))
    truth = np.unique(CELLS).size
    assert value["n"].low <= truth <= value["n"].high


# --- combinations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", ["temp > 15, rain > 0", "temp BETWEEN 10 AND 11", "half = 7, rain = 0", "temp > 1000"]
)
def test_the_frequency_of_a_combination_is_within_its_bounds(values: str) -> None:
    condition = " AND ".join(f"({part})" for part in values.split(", "))
    truth = PLAIN.truth("count(*)", condition)[0][0]
    answer = PLAIN.query(
        f"SELECT FREQUENCY({values}) AS f, CONTAINS({values}) AS c, COUNT(*) FILTER (WHERE {condition}) AS n"
    )
    assert answer["f"] == answer["n"]
    assert answer["f"].low <= truth <= answer["f"].high
    assert answer["f"].guarantee in ("exact", "certain")
    assert answer["c"].low <= (truth > 0) <= answer["c"].high
    assert answer["c"].estimate == answer["c"].high  # never a false no


def test_a_combination_of_values_that_never_were_is_surely_not_there() -> None:
    value = PLAIN.query("SELECT CONTAINS(temp > 1000, rain > 0) AS c")["c"]
    assert (value.estimate, value.low, value.high, value.guarantee) == (0, 0, 0, "exact")


# --- what is not there ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT CARDINALITY(vehicle) WHERE speed > 3", "without a condition on speed"),
        ("SELECT CARDINALITY(vehicles)", "did you mean 'vehicle'"),
        ("SELECT CONTAINS(plane = 'v1')", "no feature 'plane'"),
        ("SELECT COMMON(plane, lat > 3, lon > 4)", "no feature 'plane'"),
        ("SELECT CARDINALITY(CELL(2)) GROUP BY CELL(4)", "CARDINALITY counts"),
    ],
)
def test_what_no_span_knows_is_refused_with_a_sentence(text: str, why: str) -> None:
    with pytest.raises((NotKept, UnknownFeature, BadQuery), match=why):
        asked(text)


def test_entities_are_not_told_apart_by_features() -> None:
    whole = Relation(Strands.empty(PLAIN.layout), PLAIN.summary, members=MEMBERS)
    for text in ("SELECT CARDINALITY(vehicle) WHERE temp > 3", "SELECT CARDINALITY(vehicle) GROUP BY BIN(temp)"):
        with pytest.raises(NotKept, match="ask without conditions on features and without BIN"):
            asked(text, whole)


def test_a_sketch_without_entities_says_how_to_have_them() -> None:
    for text in ("SELECT CARDINALITY(vehicle)", "SELECT CONTAINS('v1')", "SELECT ONLY(vehicle, lat > 1, lon > 1)"):
        with pytest.raises(NotKept, match=r"build it with Spec\(entity=\.\.\.\)"):
            asked(text, Relation(WEATHER.strands))


def test_a_sketch_without_room_for_marks_says_so() -> None:
    without = Relation(STRANDS, members=replace(MEMBERS, marks=None))
    with pytest.raises(NotKept, match="no room for the marks"):
        asked("SELECT CONTAINS('v1')", without)


# --- parts of sketches ------------------------------------------------------------------------------------------------


def test_a_part_under_a_condition_counts_its_entities_under_that_condition() -> None:
    part = asked("SELECT * WHERE location LIKE 'u%' AND time < '1970-02-10'")
    value = asked("SELECT CARDINALITY(vehicle) AS n", part)["n"]
    assert value == asked("SELECT CARDINALITY(vehicle) AS n WHERE location LIKE 'u%' AND time < '1970-02-10'")["n"]


def test_a_part_of_whole_spans_has_their_members_and_one_that_cuts_them_has_none() -> None:
    part = asked("SELECT * WHERE location LIKE 'u0%'", cut="keep")
    assert asked("SELECT CARDINALITY(vehicle) AS n", part)["n"].estimate == len(distinct(starts("u0")))
    cut = asked("SELECT * WHERE location LIKE 'u0%' AND time < '1970-02-10'", cut="keep")
    assert cut.members is None

"""Sketches in memory: parts of them, their sums, differences and drifts, their tables and trees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.query.test_evaluate import WEATHER
from tests.query.test_paths import PLAIN, holds
from tests.query.test_whereabouts import TRACKS

import synopsis as syn
from synopsis.core.errors import BadQuery, BadTarget, NotKept
from synopsis.query.relation import Relation
from synopsis.sketch.strands import Strands
from synopsis.sketches import Sketch

SPEC = syn.Spec(lat="lat", lon="lon", time="time", features=["temp", "rain", "half"])
PATHS = Sketch(Relation(Strands.empty(PLAIN.layout), PLAIN.summary), SPEC)
STRANDS = Sketch(Relation(WEATHER.strands), syn.Spec(lat="a", lon="b", time="c", features=WEATHER.layout.features))
MOVING = Sketch(Relation(Strands.empty(TRACKS["dateline"].layout), TRACKS["dateline"].summary), SPEC)
MIDNIGHT_US = int(np.datetime64("2024-02-05", "us").astype(np.int64))


# --- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where",
    [
        "lat > 0",
        "time < '2024-02-05'",
        "lat > 0 AND time >= '2024-01-25T12:00' AND temp > 12",
        "lat > 0 OR time < '2024-02-05' AND rain > 0",
        "location LIKE '0%'",
    ],
)
def test_a_part_answers_as_the_whole_does_under_its_condition(where: str) -> None:
    part = PATHS.select(f"SELECT temp, rain WHERE {where}")
    assert part.features[:2] == ("temp", "rain")
    asked = "SELECT COUNT(*) AS n, MEAN(temp) AS m, STD(temp) AS s, MAX(rain) AS x, MEDIAN(temp) AS q"
    mine, whole = part.query(f"{asked} WHERE temp < 20"), PATHS.query(f"{asked} WHERE ({where}) AND temp < 20")
    for name in ("n", "m", "x", "q"):
        assert mine[name].low == pytest.approx(whole[name].low), name
        assert mine[name].high == pytest.approx(whole[name].high), name
        if whole[name].estimate is not None:
            assert mine[name].estimate == pytest.approx(whole[name].estimate), name
    assert part.nbytes < PATHS.nbytes


def test_a_part_of_a_part_is_under_both_conditions() -> None:
    part = PATHS.select("SELECT * WHERE lat > 0 AND temp > 5").select(
        "SELECT temp WHERE time < '2024-02-05' OR rain > 2"
    )
    assert part.where == "temp > 5 AND (time < '2024-02-05' OR rain > 2)"  # of places it has those in the north alone
    count = part.query("SELECT COUNT(*)")["COUNT(*)"]
    ((truth,),) = PLAIN.truth("count(*)", f"lat > 0 AND temp > 5 AND (us < {MIDNIGHT_US} OR rain > 2)")
    assert holds(count, truth)
    assert "rain" in part.features  # its condition goes on asking for it


def test_a_part_of_whole_places_needs_no_condition() -> None:
    part = PATHS.select("SELECT half WHERE lat > 0")
    assert part.where is None
    assert part.rows == PLAIN.truth("count(*)", "lat > 0")[0][0]
    with pytest.raises(BadQuery, match="no feature 'temp'"):
        part.query("SELECT MEAN(temp)")


def test_what_a_selection_cuts_is_kept_or_dropped_at_wish() -> None:
    where = "time < '2024-02-05'"
    kept, dropped = (PATHS.select(f"SELECT * WHERE {where}", cut=cut) for cut in ("keep", "drop"))
    assert kept.where is None
    assert dropped.where is None
    assert kept.rows == PATHS.rows  # both months are touched
    assert dropped.rows == PLAIN.truth("count(*)", f"us < {np.datetime64('2024-02-01', 'us').astype(np.int64)}")[0][0]
    early = STRANDS.select("SELECT * WHERE time < '2024-10-15'", cut="drop")
    touched = STRANDS.select("SELECT * WHERE time < '2024-10-15'", cut="keep")
    assert early.rows <= STRANDS.query("SELECT COUNT(*) WHERE time < '2024-10-15'")["COUNT(*)"].estimate <= touched.rows


def test_what_a_question_cuts_counts_whole_or_not_at_all_at_wish() -> None:
    for sketch, where in (
        (PATHS, "time < '2024-02-05T12:00'"),
        (STRANDS, "time < '2024-10-15T12:00'"),
        (MOVING, "lat > 1"),
    ):
        asked = f"SELECT COUNT(*) AS n WHERE {where}"
        default, kept, dropped = (
            sketch.query(asked)["n"],
            *(sketch.query(asked, cut=cut)["n"] for cut in ("keep", "drop")),
        )
        assert kept.guarantee == dropped.guarantee == "exact"
        assert (dropped.estimate, kept.estimate) == (default.low, default.high)
    with pytest.raises(BadQuery, match="cut is 'keep' or 'drop'"):
        PATHS.query("SELECT COUNT(*)", cut="half")
    with pytest.raises(BadQuery, match="ask without cut"):
        PATHS.query("SELECT DENSITY(temp)", cut="keep")


def test_what_two_pieces_of_a_scope_cut_is_never_kept_twice() -> None:
    outside = "NOT time BETWEEN '2024-10-15' AND '2024-10-16'"
    kept = STRANDS.query(f"SELECT COUNT(*) AS n WHERE {outside}", cut="keep")["n"]
    assert kept.estimate == STRANDS.rows
    with pytest.raises(BadQuery, match="one question for each side"):
        PATHS.query("SELECT COUNT(*) WHERE NOT time BETWEEN '2024-02-05T06:00' AND '2024-02-05T12:00'", cut="keep")


def test_a_part_and_what_is_drawn_are_chosen_by_numbers_and_conditions_alone() -> None:
    for ask in (
        lambda: PATHS.select("SELECT temp WHERE temp > MEAN(temp)"),
        lambda: PATHS.synthesize(rows=3, where="temp > MEAN(temp)"),
        lambda: PATHS.query("SELECT DENSITY(temp) WHERE temp > MEAN(temp)"),
    ):
        with pytest.raises(BadQuery, match="compare with a number here"):
            ask()
    with pytest.raises(BadQuery):
        PATHS.synthesize(rows=3, where="temp > 3 GROUP BY CELL(3)")


def test_a_distance_is_certain_where_a_part_may_have_no_row() -> None:
    rare, whole = PATHS.select("SELECT * WHERE temp > 33 AND rain > 5"), PATHS
    for row in rare.drift(whole):
        assert row["distance"].low == 0.0
        assert row["distance"].high == 1.0


def test_strands_are_selected_with_their_features_and_pairs() -> None:
    names = WEATHER.layout.features
    part = STRANDS.select(f'SELECT "{names[2]}", "{names[0]}" WHERE location LIKE \'u%\'')
    assert part.features == (names[0], names[2])
    asked = f'SELECT COVARIANCE("{names[0]}", "{names[2]}") AS c, MEAN("{names[2]}") AS m, COUNT(*) AS n'
    assert part.query(asked).rows == STRANDS.query(f"{asked} WHERE location LIKE 'u%'").rows
    with pytest.raises(NotKept, match="select by place and time"):
        STRANDS.select(f'SELECT * WHERE "{names[0]}" > 3')


def test_moving_objects_are_selected_too() -> None:
    part = MOVING.select("SELECT * WHERE lat > 1")
    assert part.where == "lat > 1"
    mine, whole = (
        each.query(f"SELECT COUNT(*) AS n{where}")["n"] for each, where in ((part, ""), (MOVING, " WHERE lat > 1"))
    )
    assert (mine.low, mine.high) == (whole.low, whole.high)
    assert mine.estimate == pytest.approx(whole.estimate, rel=1e-6)


def test_statistics_are_no_part_and_a_part_is_no_answer() -> None:
    with pytest.raises(BadQuery, match="select plain columns"):
        PATHS.select("SELECT COUNT(*)")
    assert isinstance(PATHS.query("SELECT temp"), Sketch)


# --- algebra ----------------------------------------------------------------------------------------------------------


def test_parts_of_one_sketch_add_up_to_it() -> None:
    north, south = (PATHS.select(f"SELECT * WHERE lat {sign} 0") for sign in (">", "<="))
    asked = "SELECT CELL(1) AS c, COUNT(*) AS n, MEAN(temp) AS m, MEDIAN(rain) AS q GROUP BY c"
    assert (south + north).query(asked).rows == PATHS.query(asked).rows
    one, two = (STRANDS.select(f"SELECT * WHERE lat {sign} 0") for sign in (">", "<="))
    assert (one + two).query("SELECT COUNT(*)").rows == STRANDS.query("SELECT COUNT(*)").rows
    assert (north + north).rows == 2 * north.rows


def test_what_does_not_add_up_is_refused_with_a_remedy() -> None:
    with pytest.raises(BadQuery, match="cut='keep'"):
        PATHS.select("SELECT * WHERE time < '2024-02-05'") + PATHS
    with pytest.raises(BadQuery, match="keeps strands and the other paths"):
        PATHS + STRANDS
    with pytest.raises(BadQuery, match="different features"):
        PATHS.select("SELECT temp") + PATHS


def test_the_difference_of_two_parts_holds_the_truth_group_by_group() -> None:
    late, early = (PATHS.select(f"SELECT * WHERE time {sign} '2024-02-05'") for sign in (">=", "<"))
    answer = late.difference(early, "SELECT CELL(1) AS c, MEAN(temp) AS m, COUNT(*) AS n GROUP BY CELL(1)")
    truth = {cell: rest for cell, *rest in PLAIN.truth(
        f"cell[1:1], avg(temp) FILTER (WHERE us >= {MIDNIGHT_US}) - avg(temp) FILTER (WHERE us < {MIDNIGHT_US}), "
        f"count(*) FILTER (WHERE us >= {MIDNIGHT_US}) - count(*) FILTER (WHERE us < {MIDNIGHT_US})", rest="GROUP BY 1"
    )}  # fmt: skip
    assert {row["c"] for row in answer} == set(truth)
    for row in answer:
        mean, count = truth[row["c"]]
        assert holds(row["m"], mean)
        assert row["n"].estimate == count
    with pytest.raises(BadQuery, match="takes no HAVING"):
        late.difference(early, "SELECT COUNT(*) LIMIT 1")


def test_drift_tells_how_far_each_feature_has_moved() -> None:
    warm, cold = (PATHS.select(f"SELECT * WHERE {where}") for where in ("temp >= 15", "temp < 15"))
    same = PATHS.drift(PATHS)
    for row in same:
        assert row["mean difference"].low <= 0.0 <= row["mean difference"].high
        assert row["distance"].low == 0.0
        assert row["distance"].estimate == pytest.approx(0.0, abs=1e-9)
    rows = {row["feature"]: row for row in warm.drift(cold)}
    hot = PLAIN.values[0] >= 15
    for at, name in enumerate(("temp", "rain", "half")):
        one, other = (np.sort(PLAIN.values[at][rows_ & ~np.isnan(PLAIN.values[at])]) for rows_ in (hot, ~hot))
        assert holds(rows[name]["mean difference"], one.mean() - other.mean()), name
        every = np.concatenate([one, other])
        distance = np.abs(
            np.searchsorted(one, every, side="right") / one.size
            - np.searchsorted(other, every, side="right") / other.size
        ).max()
        assert rows[name]["distance"].low <= distance <= rows[name]["distance"].high, name
    assert rows["temp"]["distance"].low > 0.7
    only_means = STRANDS.drift(STRANDS).rows
    assert only_means[0]["distance"].estimate is None
    assert only_means[0]["mean difference"].estimate == 0.0


# --- as data ----------------------------------------------------------------------------------------------------------


def test_a_sketch_is_a_table_of_strands_or_of_paths_that_stand_for_its_rows() -> None:
    strands = STRANDS.to_arrow()
    assert strands.num_rows == len(WEATHER.strands)
    assert sum(strands["rows"].to_pylist()) == STRANDS.rows
    paths = PATHS.to_arrow()
    assert sum(paths["rows"].to_pylist()) == pytest.approx(PATHS.rows)
    part = PATHS.select("SELECT temp WHERE temp > 12")
    table = pa.table(part)
    assert sum(table["rows"].to_pylist()) == pytest.approx(part.query("SELECT COUNT(*)")["COUNT(*)"].estimate, rel=0.05)
    assert min(table["temp high"].to_pylist()) > 12
    assert set(table["lat"].to_pylist()) <= set(PLAIN.latitude.tolist())
    assert len(PATHS.select("SELECT * WHERE lat > 80").to_pandas()) == 0


@pytest.mark.parametrize("sketch", [PATHS, STRANDS], ids=["paths", "strands"])
def test_the_tree_of_a_sketch_is_walked_with_statistics_of_every_vertex(sketch: Sketch) -> None:
    vertices = list(sketch.walk("CELL(1)", "BUCKET('1mo')"))
    root, *below = vertices
    assert root.count.estimate == sketch.rows
    leaves = [vertex for vertex in below if len(vertex.keys) == 2]
    assert sum(vertex.count.estimate for vertex in leaves) == sketch.rows
    leaf = leaves[0]
    begin = leaf.keys["BUCKET('1mo')"]
    end = (begin.replace(day=28) + timedelta(days=4)).replace(day=1)
    asked = sketch.query(
        f"SELECT MEAN({sketch.features[0]}) AS m WHERE location LIKE '{leaf.keys['CELL(1)']}%' "
        f"AND time >= '{begin.date()}' AND time < '{end.date()}'"
    )["m"]
    assert leaf.statistics[sketch.features[0]]["mean"].estimate == pytest.approx(asked.estimate)
    assert repr(root).startswith("<vertex root")


def test_bins_are_planes_of_the_tree() -> None:
    children = PATHS.root.children("BIN(half)")
    assert children[-1].keys["BIN(half)"] is None
    assert sum(child.count.estimate for child in children) == pytest.approx(PATHS.rows, rel=0.01)
    with pytest.raises(BadQuery):
        PATHS.root.children("COUNT(*)")
    with pytest.raises(NotKept, match="without strict"):
        PATHS.root.children("BUCKET('5m')")


def test_an_answer_knows_its_rows_and_how_much_of_its_scope_has_data() -> None:
    answer = PATHS.query("SELECT MEAN(temp) WHERE lat > 0 AND temp > 12 GROUP BY BUCKET('1d')")
    assert answer.n == PATHS.query("SELECT COUNT(*) AS n WHERE lat > 0 AND temp > 12")["n"]
    place = PLAIN.latitude[0], PLAIN.longitude[0]
    assert PATHS.query(f"SELECT COUNT(*) WHERE NEAR({place[0]}, {place[1]}, 0.001)").coverage == 1.0
    assert PATHS.query("SELECT COUNT(*) WHERE BOX(-89, 0, -88, 9)").coverage == 0.0
    world = PATHS.query("SELECT COUNT(*)").coverage
    assert world is not None
    assert 0.0 < world < 0.01
    everything = STRANDS.query(
        "SELECT COUNT(*) WHERE NOT location LIKE 'u%' OR WITHIN('POLYGON ((0 0, 9 0, 0 9, 0 0))')"
    )
    assert everything.coverage is not None
    assert 0.0 <= everything.coverage <= 1.0


# --- saved ------------------------------------------------------------------------------------------------------------


def test_a_part_is_saved_and_opened_as_a_sketch_of_its_own(tmp_path: Path) -> None:
    part = PATHS.select("SELECT temp, half WHERE lat > 0 AND time < '2024-02-05' AND NOT temp BETWEEN 1 AND 3")
    part.save(tmp_path / "part.syn")
    opened = syn.open(tmp_path / "part.syn")
    asked = "SELECT CELL(2), COUNT(*), MEAN(half), STD(temp) GROUP BY CELL(2)"
    assert opened.query(asked).rows == part.query(asked).rows
    assert opened.where == part.where
    assert opened.features == ("temp", "half")
    assert opened.info()["rows"] == part.rows
    with pytest.raises(BadTarget, match="there is a sketch"):
        part.save(tmp_path / "part.syn")
    STRANDS.select("SELECT * WHERE lat > 0").save(tmp_path / "strands.syn")
    again = syn.open(tmp_path / "strands.syn")
    assert again.query("SELECT COUNT(*)").rows == STRANDS.query("SELECT COUNT(*) WHERE lat > 0").rows
    assert again.as_of is not None
    assert str(datetime.now(UTC).year) not in str(again.as_of)  # rows say when they are from, not when they are saved

"""Contrasts: FILTER within a question, JOIN of questions, the difference of two sketches."""

from __future__ import annotations

import numpy as np
import pytest
from tests.query.test_evaluate import WEATHER
from tests.query.test_paths import PLAIN, Data, holds

from synopsis.core.errors import BadQuery
from synopsis.query.answer import Answer
from synopsis.query.evaluate import asked_of
from synopsis.query.relation import Relation
from synopsis.sketch.strands import Strands

OTHER = Data(places=4, start="2024-02-01", hours=20 * 24, warmth=14.0)
JANUARY, FEBRUARY = "time < '2024-02-01'", "time >= '2024-02-01'"
MIDNIGHT_US = int(np.datetime64("2024-02-01", "us").astype(np.int64))


def related(data):
    return Relation(Strands.empty(data.layout), data.summary)


def asked(text, data=PLAIN, **others) -> Answer:
    return asked_of(related(data), text, {name: related(each) for name, each in others.items()})


# --- filters ----------------------------------------------------------------------------------------------------------


def test_a_filtered_statistic_is_that_of_the_question_with_the_condition_added():
    filtered = PLAIN.query(
        "SELECT MEAN(temp) FILTER (WHERE lat > 0 OR rain > 1) AS a, COUNT(*) AS n, "
        "STD(half) FILTER (WHERE temp > 12) AS s "
        f"WHERE {JANUARY}"
    )
    assert filtered["a"] == PLAIN.query(f"SELECT MEAN(temp) AS a WHERE {JANUARY} AND (lat > 0 OR rain > 1)")["a"]
    assert filtered["s"] == PLAIN.query(f"SELECT STD(half) AS s WHERE {JANUARY} AND temp > 12")["s"]
    assert filtered["n"] == PLAIN.query(f"SELECT COUNT(*) AS n WHERE {JANUARY}")["n"]


def test_groups_are_those_of_where_whatever_filters_leave_of_them():
    answer = PLAIN.query(
        "SELECT CELL(1) AS c, COUNT(*) FILTER (WHERE lat > 0) AS north, "
        "MEAN(temp) FILTER (WHERE lat > 0) AS m GROUP BY c"
    )
    truth = {cell: (north, mean) for cell, north, mean in PLAIN.truth(
        "cell[1:1], count(*) FILTER (WHERE lat > 0), avg(temp) FILTER (WHERE lat > 0)", rest="GROUP BY 1"
    )}  # fmt: skip
    assert {row["c"] for row in answer} == set(truth)
    for row in answer:
        north, mean = truth[row["c"]]
        assert row["north"].estimate == north
        assert row["north"].guarantee == "exact"
        assert (row["m"].estimate is None) == (mean is None)
        assert mean is None or holds(row["m"], mean)


def test_strands_take_filters_on_places_and_times():
    text = "SELECT CELL(1) AS c, COUNT(*) FILTER (WHERE time < '2024-10-15') AS early, COUNT(*) AS n GROUP BY c"
    answer = asked_of(Relation(WEATHER.strands), text)
    early = {
        row["c"]: row["n"]
        for row in asked_of(
            Relation(WEATHER.strands),
            text.replace("early", "e")
            .replace("COUNT(*) FILTER (WHERE time < '2024-10-15') AS e, ", "")
            .replace("GROUP", "WHERE time < '2024-10-15' GROUP"),
        )
    }
    assert all(row["early"].estimate == (early[row["c"]].estimate if row["c"] in early else 0) for row in answer)


def test_sample_statistics_divide_by_one_less():
    names = "VAR_SAMP(temp) AS v, STDDEV_SAMP(temp) AS s, COVAR_SAMP(temp, half) AS c, VAR(temp) AS w, COUNT(temp) AS n"
    answer = PLAIN.query(f"SELECT {names}, COVARIANCE(temp, half) AS d, COUNT(half) AS m")
    n, m = float(answer["n"]), float(answer["m"])
    assert float(answer["v"]) == pytest.approx(float(answer["w"]) * n / (n - 1))
    assert float(answer["s"]) == pytest.approx(np.sqrt(float(answer["v"])))
    assert float(answer["c"]) == pytest.approx(float(answer["d"]) * m / (m - 1))
    exact = asked_of(Relation(WEATHER.strands), "SELECT VAR_SAMP(kelvin) AS v, STDDEV_SAMP(kelvin) AS s")
    values = WEATHER.feature("kelvin")
    assert float(exact["v"]) == pytest.approx(np.nanvar(values, ddof=1))
    assert exact["s"].guarantee == "exact"


# --- joins ------------------------------------------------------------------------------------------------------------

BOTH = f"""
SELECT a.cell, a.m - b.m AS difference, b.n
FROM (SELECT CELL(2) AS cell, MEAN(temp) AS m WHERE {JANUARY} GROUP BY CELL(2)) AS a
JOIN (SELECT CELL(2) AS cell, MEAN(temp) AS m, COUNT(*) AS n WHERE {FEBRUARY} GROUP BY CELL(2)) AS b USING (cell)
"""


def test_periods_are_joined_by_cell_and_their_difference_holds_the_truth():
    answer = asked(BOTH)
    truth = dict(PLAIN.truth(
        f"cell[1:2], avg(temp) FILTER (WHERE us < {MIDNIGHT_US}) - avg(temp) FILTER (WHERE us >= {MIDNIGHT_US})",
        rest="GROUP BY 1",
    ))  # fmt: skip
    assert answer.columns == ["cell", "difference", "n"]
    assert {row["cell"] for row in answer} == set(truth)
    assert all(holds(row["difference"], truth[row["cell"]]) for row in answer)
    assert all(row["difference"].guarantee == "certain" for row in answer)


def test_rows_of_a_join_are_chosen_ordered_and_limited():
    ordered = asked(BOTH + "WHERE b.n > 100 AND NOT a.m - b.m > 0.5 ORDER BY difference DESC LIMIT 2").rows
    everything = sorted((float(row["difference"]) for row in asked(BOTH)), reverse=True)
    assert [float(row["difference"]) for row in ordered] == [each for each in everything if each <= 0.5][:2]
    by_cell = [row["cell"] for row in asked(BOTH + "ORDER BY cell DESC")]
    assert by_cell == sorted(by_cell, reverse=True)


def test_two_sketches_are_joined_by_cell_and_bucket():
    text = (
        "SELECT here.day, here.c, here.n - there.n AS d FROM "
        "(SELECT CELL(1) AS c, BUCKET('1d') AS day, COUNT(*) AS n GROUP BY CELL(1), BUCKET('1d')) AS here JOIN "
        "(SELECT CELL(1) AS cell, BUCKET('1d') AS day, COUNT(*) AS n FROM other GROUP BY CELL(1), BUCKET('1d')) "
        "AS there ON here.c = there.cell AND there.day = here.day"
    )
    answer = asked(text, other=OTHER)
    counts = []
    for data in (PLAIN, OTHER):
        found = data.truth("cell[1:1], us // 86400000000, count(*)", rest="GROUP BY 1, 2")
        counts.append({(cell, day): number for cell, day, number in found})
    shared = counts[0].keys() & counts[1].keys()
    assert len(answer) == len(shared) > 0
    for row in answer:
        key = row["c"], int(row["day"].timestamp() // 86_400)
        assert row["d"].estimate == counts[0][key] - counts[1][key]
        assert row["d"].guarantee == "exact"


def test_regions_are_contrasted_without_keys():
    answer = asked(
        "SELECT north.r - south.r AS contrast FROM (SELECT CORRELATION(temp, half) AS r WHERE lat > 0) AS north, "
        "(SELECT CORRELATION(temp, half) AS r WHERE lat <= 0) AS south"
    )
    north, south = (PLAIN.query(f"SELECT CORRELATION(temp, half) AS r WHERE lat {sign} 0")["r"] for sign in (">", "<="))
    assert answer["contrast"].estimate == pytest.approx(float(north) - float(south))
    assert answer["contrast"].low == pytest.approx(north.low - south.high)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("USING (cell)", ""), "joined by their keys; add USING"),
        (("USING (cell)", "USING (cells)"), "did you mean 'cell'"),
        (("USING (cell)", "USING (m)"), "by cells, buckets and bins, not by statistics"),
        (("a.m - b.m", "a.k - b.m"), "no column 'k'"),
        (("a.m - b.m", "c.m - b.m"), "no question is called 'c'"),
        (("a.m - b.m", "m - b.m"), "may mean a.m or b.m"),
        (("a.m - b.m", "a.cell - b.m"), "is a key, not a number"),
        (("a.m - b.m", "a.m - MEAN(temp)"), "statistics stand in the questions"),
        (("MEAN(temp) AS m WHERE time <", "MEAN(tem) AS m WHERE time <"), "no feature 'tem'"),
        (("CELL(2) AS cell, MEAN(temp) AS m WHERE", "CELL(2) AS cell, BUCKET('1d') AS d, MEAN(temp) AS m WHERE"),
         "add it to GROUP BY"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused_in_a_sentence(change, why):
    with pytest.raises(BadQuery, match=why):
        asked(BOTH.replace(*change))


def test_keys_of_different_kinds_and_keys_that_repeat_are_refused():
    with pytest.raises(BadQuery, match="keys of different kinds"):
        asked(
            BOTH.replace(
                "SELECT CELL(2) AS cell, MEAN(temp) AS m WHERE time <",
                "SELECT BUCKET('1d') AS cell, MEAN(temp) AS m WHERE time <",
            ).replace("01' GROUP BY CELL(2)", "01' GROUP BY BUCKET('1d')", 1)
        )
    with pytest.raises(BadQuery, match="join by all that it groups by"):
        asked(
            BOTH.replace(
                "MEAN(temp) AS m WHERE time < '2024-02-01' GROUP BY CELL(2)",
                "BUCKET('1d') AS d, MEAN(temp) AS m WHERE time < '2024-02-01' GROUP BY CELL(2), BUCKET('1d')",
            )
        )
    with pytest.raises(BadQuery, match="no sketch is called 'othr'; did you mean 'other'"):
        asked("SELECT COUNT(*) FROM othr", other=OTHER)


def test_a_filter_of_several_terms_finds_its_groups_whatever_the_order_of_keys():
    text = "SELECT COUNT(*) FILTER (WHERE time <> '2024-10-28') AS n, COUNT(*) AS m GROUP BY BUCKET('1q'), CELL(1)"
    rows = asked_of(Relation(WEATHER.strands), text).rows
    assert all(row["n"].low <= row["m"].estimate for row in rows)
    assert sum(row["n"].high for row in rows) == WEATHER.instants_us.size


def test_a_sample_covariance_of_strands_counts_the_rows_that_have_both():
    answer = asked_of(Relation(WEATHER.strands), "SELECT COVAR_SAMP(kelvin, rain) AS c")
    one, two = WEATHER.feature("kelvin"), WEATHER.feature("rain")
    both = ~np.isnan(one) & ~np.isnan(two)
    assert answer["c"].estimate == pytest.approx(np.cov(one[both], two[both])[0, 1])
    assert answer["c"].guarantee == "exact"


def test_a_filter_goes_with_a_threshold_in_where():
    answer = PLAIN.query("SELECT MIN(temp) FILTER (WHERE rain > 0) AS m WHERE temp > MEAN(temp)")
    ((truth,),) = PLAIN.truth("min(temp)", "rain > 0 AND temp > (SELECT avg(temp) FROM rows)")
    assert holds(answer["m"], truth)

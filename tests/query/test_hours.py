"""Questions about hours of a day: paths know their hours, so these are not answered as a part of the whole day."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.sketch.test_hours import HOUR_US, LAYOUT

from synopsis.grid import geohash
from synopsis.query.evaluate import answer_of, ask
from synopsis.query.language import read
from synopsis.query.relation import Relation
from synopsis.query.straight import answered
from synopsis.sketch import blocks
from synopsis.sketch.budget import even_choice, tallied
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.layout import Layout
from synopsis.sketch.scales import Scales
from synopsis.sketch.strands import Strands
from synopsis.sketch.strata import from_tallies
from synopsis.sketch.stretches import Stretching
from synopsis.sketch.summary import Summary, cut
from synopsis.sketch.tallies import EVERYTHING

PLACES, DAYS = 25, 60
FIRST_DAY = np.datetime64("2024-03-01")


class World:
    """Stations that are warm at noon, some days more than others, and the summary of their rows."""

    def __init__(self, stretched: bool = True, timezone: str = "UTC") -> None:
        random = np.random.default_rng(4)
        latitude, longitude = random.uniform(40, 44, PLACES), random.uniform(4, 10, PLACES)
        place, hour = (each.ravel() for each in np.meshgrid(np.arange(PLACES), np.arange(DAYS * 24), indexing="ij"))
        self.layout = Layout(("temp", "wind"), 20, "1d", timezone)
        first = FIRST_DAY.astype("datetime64[us]").astype(np.int64)
        self.us = first + hour * HOUR_US
        local_us = self.layout.zone.to_local(self.us)
        warm = 10 * np.sin((local_us % (24 * HOUR_US) / HOUR_US - 9) * np.pi / 12)
        slow = np.cumsum(random.normal(0, 0.2, DAYS * 24))[hour]
        temp = np.round(12 + warm + slow + random.normal(0, 1, hour.size), 1)
        self.values = np.stack((temp, random.lognormal(0, 1, hour.size)))
        self.latitude, self.longitude = latitude[place], longitude[place]
        scales = Scales.fit(self.values)
        stretching = Stretching.of(scales, 10) if stretched else None
        layout = replace(LAYOUT, months=EVERYTHING, kept=0.15, stretching=stretching)
        fine = scales.codes(self.values)
        kept = even_choice(self.latitude, self.longitude, local_us, fine, layout)
        levels = None
        if stretching is not None:
            tables = stretching.levels_of_codes(scales)
            levels = np.stack([table[codes] for table, codes in zip(tables, fine, strict=True)])
        tallies = tallied(self.latitude, self.longitude, local_us, fine, kept, layout, levels)
        strata = from_tallies(scales, tallies, 15, stretching)
        contexts = Contexts.fit(strata.codes, 15)
        packed = tuple(blocks.closed(strata.take(run), contexts) for run in cut(strata))
        where = tallies.latitude, tallies.longitude
        self.summary = Summary(layout, *where, scales, contexts, packed)
        self.relation = Relation(Strands.empty(self.layout), self.summary)

    def query(self, text):
        return ask(Strands.empty(self.layout), text, self.summary)

    def rows_in(self, begin, end):
        first, last = (np.datetime64(each).astype("datetime64[us]").astype(np.int64) for each in (begin, end))
        return (self.us >= first) & (self.us < last)


WORLD = World()


def spans(hours, many=60, seed=0):
    random = np.random.default_rng(seed)
    for begin in FIRST_DAY + random.integers(24, (DAYS - 2) * 24, many).astype("timedelta64[h]"):
        yield str(begin), str(begin + np.timedelta64(hours, "h"))


@pytest.mark.parametrize("world", [WORLD, World(stretched=False)], ids=["with stretches", "without"])
@pytest.mark.parametrize("hours", [4, 10, 40])
def test_some_hours_are_told_by_the_paths_of_these_hours(world, hours):
    off, held = [], []
    for begin, end in spans(hours):
        text = f"SELECT MEAN(temp) AS m, COUNT(*) AS n, MEDIAN(temp) AS q WHERE time >= '{begin}' AND time < '{end}'"
        answer, values = world.query(text), world.values[0][world.rows_in(begin, end)]
        assert answer["n"].estimate == values.size
        assert answer["m"].low <= values.mean() <= answer["m"].high
        for name, true in (("m", values.mean()), ("q", np.median(values))):
            off.append(abs(answer[name].estimate - true))
            held.append(answer[name].p95[0] <= true <= answer[name].p95[1])
    assert np.mean(off) < 1.0  # the mean of a whole day would be off by 5
    assert np.mean(held) >= 0.85


def test_groups_by_hours_follow_the_day():
    where = "time >= '2024-03-10' AND time < '2024-03-13'"
    answer = WORLD.query(f"SELECT BUCKET('1h') AS h, MEAN(temp) AS m, COUNT(*) AS n WHERE {where} GROUP BY h")
    assert not answer.notes
    assert [row["n"].estimate for row in answer.rows] == [PLACES] * 72
    true = WORLD.values[0][WORLD.rows_in("2024-03-10", "2024-03-13")].reshape(PLACES, 72).mean(axis=0)
    found = np.array([row["m"].estimate for row in answer.rows])
    assert np.abs(found - true).mean() < 2.5  # the mean of the day would be off by 6
    assert np.corrcoef(found, true)[0, 1] > 0.95
    assert all(row["m"].low <= each <= row["m"].high for row, each in zip(answer.rows, true, strict=True))


def test_an_hour_is_answered_by_itself_as_among_others():
    where = "location LIKE 's%' AND time >= '2024-03-10' AND time < '2024-03-11'"
    columns = "MEAN(temp) AS m, STD(temp) AS s, MAX(wind) AS w, MEAN(temp) FILTER (WHERE wind > 1) AS f"
    answer = WORLD.query(f"SELECT BUCKET('2h') AS h, {columns} WHERE {where} GROUP BY h")
    assert len(answer.rows) == 12
    for row in answer.rows:
        begin, end = row["h"], row["h"].replace(hour=row["h"].hour + 1, minute=59, second=59, microsecond=999_999)
        alone = WORLD.query(f"SELECT {columns} WHERE {where} AND time BETWEEN '{begin}' AND '{end}'")
        for name in "mswf":
            assert row[name].estimate == pytest.approx(alone[name].estimate, rel=1e-6), (name, begin)


def test_hours_without_a_path_are_told_by_the_others_of_their_day():
    cells = geohash.to_text(geohash.encode(WORLD.summary.latitude, WORLD.summary.longitude, 35), 7)
    away = []
    for cell in cells[:8]:
        for begin, end in spans(1, many=10, seed=3):
            where = f"location LIKE '{cell}%' AND time >= '{begin}' AND time < '{end}'"
            answer = WORLD.query(f"SELECT MEAN(temp) AS m WHERE {where}")
            day = begin[:10]
            whole = WORLD.query(
                f"SELECT MEAN(temp) AS m WHERE location LIKE '{cell}%' AND time BETWEEN '{day}' AND '{day}T23'"
            )
            away.append(abs(answer["m"].estimate - whole["m"].estimate))
            assert answer["m"].p95[0] <= answer["m"].estimate <= answer["m"].p95[1]
    assert np.mean(away) < 8.0  # not further than days vary within


def test_plain_questions_about_hours_go_straight_to_the_same_answer():
    columns = ("COUNT(*)", "MEAN(temp)", "STD(temp)", "MIN(temp)", "QUANTILE(temp, 0.3)")
    for begin, end in spans(7, many=20, seed=5):
        text = f"SELECT {', '.join(columns)} WHERE time >= '{begin}' AND time < '{end}'"
        straight, long = answered(WORLD.relation, text), answer_of(WORLD.relation, read(text))
        assert straight is not None
        for name in columns:
            one, other = straight.column(name), long.column(name)
            for numbers in ("estimate", "low", "high", "guarantee", "p95"):
                assert getattr(one, numbers).tobytes() == getattr(other, numbers).tobytes(), (name, numbers, text)


def test_hours_are_those_of_the_clocks_of_the_zone():
    world = World(timezone="America/Sao_Paulo")
    answer = world.query(
        "SELECT BUCKET('6h') AS h, MEAN(temp) AS m WHERE time >= '2024-03-10' AND time < '2024-03-12' GROUP BY h"
    )
    assert [row["h"].hour for row in answer.rows] == [0, 6, 12, 18] * 2
    means = np.array([row["m"].estimate for row in answer.rows]).reshape(2, 4)
    assert (means.argmax(axis=1) == 2).all()  # warmest from noon on
    assert (means.argmin(axis=1) == 0).all()

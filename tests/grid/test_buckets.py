"""Buckets agree with DuckDB's date_trunc on local time, and with watching the clock minute by minute."""

from datetime import datetime, timedelta
from itertools import pairwise

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synopsis.grid.buckets import LADDER, UNITS, Bucket, ladder
from synopsis.grid.zones import MICROSECONDS, Zone

ZONES = (
    "UTC",
    "Europe/Paris",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Shanghai",
    "America/St_Johns",
    "Pacific/Apia",
)
EPOCH = datetime(1970, 1, 1)
MINUTE_US = 60 * MICROSECONDS
DAY_US = 86_400 * MICROSECONDS

zones = st.sampled_from(ZONES).map(Zone.named)
moments = st.datetimes(datetime(1820, 1, 1), datetime(2119, 12, 1))
buckets = st.builds(Bucket, st.sampled_from(UNITS), st.integers(1, 60))


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment_of(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=int(us))


def instants_around_changes(zone: Zone, since: int, until: int) -> NDArray[np.int64]:
    """Random instants, and every 20 minutes around the changes, within some years."""
    low, high = microseconds(datetime(since, 1, 1)), microseconds(datetime(until, 1, 1))
    changes = zone.changes_us[(zone.changes_us > low) & (zone.changes_us < high)]
    near = changes[:, np.newaxis] + np.arange(-5, 6) * 20 * MINUTE_US - np.array([1, 0])[:, np.newaxis, np.newaxis]
    return np.concatenate([near.ravel(), np.random.default_rng(1).integers(low, high, 2_000)])


WORDS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month", "q": "quarter", "y": "year"}


@pytest.mark.parametrize("name", ZONES)
def test_ordinals_count_what_date_trunc_on_local_time_cuts(name: str) -> None:
    zone = Zone.named(name)
    instants = instants_around_changes(zone, 1950, 2030)
    cuts = ", ".join(
        f"date_diff('{word}', TIMESTAMP '{'1969-12-29' if unit == 'w' else '1970-01-01'}', date_trunc('{word}', clock))"
        for unit, word in WORDS.items()
    )
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT {cuts} FROM (SELECT timezone($zone, make_timestamptz(unnest($us))) AS clock)",
            {"zone": name, "us": instants.tolist()},
        ).fetchall()
    for unit, expected in zip(WORDS, np.array(rows).T, strict=True):
        assert np.array_equal(Bucket(unit).ordinals(instants, zone), expected), unit


@given(moments, buckets)
def test_ordinals_are_calendar_arithmetic_on_the_wall_clock(moment: datetime, bucket: Bucket) -> None:
    days = (moment - EPOCH).days
    seconds = (moment - EPOCH) // timedelta(seconds=1)
    months = (moment.year - 1970) * 12 + moment.month - 1
    units = {
        "s": seconds,
        "m": seconds // 60,
        "h": seconds // 3600,
        "d": days,
        "w": (days + 3) // 7,
        "mo": months,
        "q": months // 3,
        "y": moment.year - 1970,
    }
    assert bucket.ordinals([microseconds(moment)]).tolist() == [units[bucket.unit] // bucket.count]


def test_weeks_begin_on_monday() -> None:
    starts = Bucket("w").starts_us(np.arange(-3_000, 3_000))
    assert {moment_of(start).weekday() for start in starts} == {0}
    assert moment_of(Bucket("w").starts_us(0)) == datetime(1969, 12, 29)


def test_the_last_microsecond_before_1970_belongs_to_the_bucket_before() -> None:
    for text in ("1s", "7m", "5h", "1d", "3mo", "1q", "10y"):
        assert Bucket.parse(text).ordinals([-1, 0]).tolist() == [-1, 0]


@given(moments, buckets, zones)
def test_an_instant_lies_between_the_start_and_the_reach_of_its_bucket(
    moment: datetime, bucket: Bucket, zone: Zone
) -> None:
    instant = microseconds(moment)
    ordinal = bucket.ordinals(instant, zone)
    start, reach = int(bucket.starts_us(ordinal, zone)), int(bucket.reach_us(ordinal, zone))
    assert start <= instant < reach
    assert bucket.ordinals(start, zone) == ordinal == bucket.ordinals(reach - 1, zone)
    assert bucket.ordinals(start - 1, zone) != ordinal != bucket.ordinals(reach, zone)
    assert bucket.ends_us(ordinal, zone) == bucket.starts_us(ordinal + 1, zone) <= reach


@pytest.mark.parametrize("text", ["15m", "1h", "1d"])
@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("Europe/Paris", datetime(2024, 10, 27)),  # 03:00 becomes 02:00
        ("Europe/Paris", datetime(2024, 3, 31)),  # 02:00 becomes 03:00
        ("America/Sao_Paulo", datetime(2018, 11, 4)),  # 00:00 becomes 01:00
        ("America/Sao_Paulo", datetime(2018, 2, 18)),  # 00:00 becomes 23:00
        ("America/St_Johns", datetime(2010, 11, 7)),  # 00:01 becomes 23:01
        ("America/Toronto", datetime(1919, 3, 31)),  # 23:30 becomes 00:30
        ("Australia/Lord_Howe", datetime(2024, 4, 7)),  # 02:00 becomes 01:30
        ("Australia/Lord_Howe", datetime(2024, 10, 6)),
        ("Pacific/Apia", datetime(2011, 12, 30)),  # never happened
    ],
)
def test_starts_and_reaches_are_what_watching_the_clock_finds(name: str, day: datetime, text: str) -> None:
    zone, bucket = Zone.named(name), Bucket.parse(text)
    instants = microseconds(day) + np.arange(-5 * 1440, 5 * 1440) * MINUTE_US
    seen = bucket.ordinals(instants, zone)
    present = np.unique(seen)[1:-1]  # the outermost are seen in part only
    first = [int(instants[seen == ordinal].min()) for ordinal in present]
    last = [int(instants[seen == ordinal].max()) for ordinal in present]
    assert bucket.starts_us(present, zone).tolist() == first
    assert (bucket.reach_us(present, zone) - MINUTE_US).tolist() == last


def test_a_day_that_never_happened_is_an_empty_bucket() -> None:
    day, apia = Bucket("d"), Zone.named("Pacific/Apia")
    ordinal = (datetime(2011, 12, 30) - EPOCH).days
    change = microseconds(datetime(2011, 12, 30, 10))
    assert day.starts_us(ordinal, apia) == day.ends_us(ordinal, apia) == day.reach_us(ordinal, apia) == change


def test_days_have_23_24_or_25_hours_in_paris() -> None:
    day, paris = Bucket("d"), Zone.named("Europe/Paris")
    year = np.arange((datetime(2024, 1, 1) - EPOCH).days, (datetime(2025, 1, 1) - EPOCH).days)
    hours = (day.ends_us(year, paris) - day.starts_us(year, paris)) // (60 * MINUTE_US)
    assert np.unique(hours, return_counts=True)[1].tolist() == [1, 364, 1]
    assert np.unique(hours).tolist() == [23, 24, 25]


def test_both_autumn_hours_fall_into_one_bucket() -> None:
    hour, paris = Bucket("h"), Zone.named("Europe/Paris")
    both = [microseconds(datetime(2024, 10, 27, 0, 30)), microseconds(datetime(2024, 10, 27, 1, 30))]
    assert len(set(hour.ordinals(both, paris).tolist())) == 1


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1mo", "1mo"),
        ("15m", "15m"),
        ("15min", "15m"),
        ("15 mins", "15m"),
        ("90s", "90s"),
        ("day", "1d"),
        ("2 Weeks", "2w"),
        ("1D", "1d"),
        ("quarters", "1q"),
        (" 3 years ", "3y"),
        ("007d", "7d"),
        ("month", "1mo"),
        ("1 hour", "1h"),
        ("30 seconds", "30s"),
    ],
)
def test_a_text_names_a_bucket(text: str, canonical: str) -> None:
    assert str(Bucket.parse(text)) == canonical


@given(buckets)
def test_the_text_of_a_bucket_names_the_bucket(bucket: Bucket) -> None:
    assert Bucket.parse(str(bucket)) == bucket


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1M", "'1M' may mean minutes or months: write 1m or 1mo"),
        ("1 fortnight", "no unit of time 'fortnight' in '1 fortnight'; there are s, m, h"),
        ("0d", "at least 1d, not 0d"),
        ("-1d", "'-1d' is not a bucket"),
        ("1.5h", "'1.5h' is not a bucket"),
        ("", "'' is not a bucket"),
        ("7", "'7' is not a bucket"),
        ("٣d", "'٣d' is not a bucket"),
        ("99999999999999y", "at most 10,000 years"),
    ],
)
def test_what_names_no_bucket_is_refused_with_a_reason(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Bucket.parse(text)


def test_a_bucket_cannot_be_made_of_an_unknown_unit() -> None:
    with pytest.raises(ValueError, match="no unit of time 'fortnight'"):
        Bucket("fortnight")


@pytest.mark.parametrize(
    ("coarse", "fine", "answer"),
    [
        ("1mo", "1d", True),
        ("1mo", "1w", False),
        ("1d", "6h", True),
        ("1d", "5h", False),
        ("5d", "5h", True),
        ("1y", "1q", True),
        ("2mo", "1mo", True),
        ("1q", "2mo", False),
        ("1y", "2mo", True),
        ("1mo", "2d", False),
        ("1mo", "24h", True),
        ("1d", "24h", True),
        ("24h", "1d", True),
        ("1w", "1d", True),
        ("1w", "7d", False),
        ("7d", "1w", False),
        ("3w", "3d", True),
        ("52w", "13w", True),
        ("13w", "4w", False),
        ("1d", "1mo", False),
        ("1w", "1mo", False),
        ("1h", "1d", False),
    ],
)
def test_enclosing_buckets_are_known(coarse: str, fine: str, answer: bool) -> None:
    assert Bucket.parse(coarse).encloses(Bucket.parse(fine)) is answer


@settings(max_examples=300)
@given(buckets, buckets)
def test_a_bucket_encloses_another_just_when_its_starts_are_among_the_other_s(coarse: Bucket, fine: Bucket) -> None:
    starts = coarse.starts_us(np.arange(-400, 401))
    fine_starts = bool(np.all(fine.ordinals(starts) != fine.ordinals(starts - 1)))
    assert coarse.encloses(fine) == fine_starts


@given(st.lists(moments), zones, buckets, buckets)
def test_coarsening_gives_the_bucket_that_the_instants_would_have_had(
    instants: list[datetime], zone: Zone, fine: Bucket, coarse: Bucket
) -> None:
    if not coarse.encloses(fine):
        coarse = Bucket(fine.unit, fine.count * coarse.count)
    instants_us = [microseconds(instant) for instant in instants]
    coarsened = fine.coarsen(fine.ordinals(instants_us, zone), coarse)
    assert coarsened.tolist() == coarse.ordinals(instants_us, zone).tolist()


def test_buckets_that_do_not_nest_are_not_coarsened() -> None:
    with pytest.raises(ValueError, match="buckets of 1w do not nest in buckets of 1mo"):
        Bucket("w").coarsen([0], Bucket("mo"))


@pytest.mark.parametrize(
    ("finest", "chain"),
    [
        ("1s", "1s 1m 1h 1d 1mo 1q 1y"),
        ("15m", "15m 1h 1d 1mo 1q 1y"),
        ("6h", "6h 1d 1mo 1q 1y"),
        ("1d", "1d 1mo 1q 1y"),
        ("24h", "24h 1mo 1q 1y"),
        ("2mo", "2mo 1y"),
        ("1y", "1y"),
        ("1w", "1w 4w 52w"),
        ("13w", "13w 52w"),
        ("5h", "5h"),
    ],
)
def test_the_ladder_leads_from_the_finest_bucket_to_the_year(finest: str, chain: str) -> None:
    assert " ".join(str(rung) for rung in ladder(Bucket.parse(finest))) == chain


@given(buckets)
def test_every_rung_of_a_ladder_encloses_the_one_before(finest: Bucket) -> None:
    chain = ladder(finest)
    assert chain[0] == finest
    assert set(chain[1:]) <= set(LADDER)
    for fine, coarse in pairwise(chain):
        assert coarse.encloses(fine)
        assert not fine.encloses(coarse)

"""Tables of changes say what zoneinfo says, instant by instant."""

import pickle
from datetime import UTC as STANDARD_UTC
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synopsis.grid.zones import MICROSECONDS, UTC, Zone

NAMES = (
    "UTC",
    "Europe/Paris",
    "America/New_York",
    "America/Sao_Paulo",  # clocks changed at midnight
    "America/St_Johns",  # clocks went back at one minute past midnight
    "America/Toronto",  # in 1919 clocks went from 23:30 to 00:30
    "Asia/Kolkata",  # half an hour off
    "Asia/Kathmandu",
    "Asia/Manila",  # the oldest change of all
    "Asia/Shanghai",
    "Africa/Casablanca",  # Ramadan
    "Africa/Freetown",  # two changes within four days
    "Australia/Lord_Howe",  # half an hour of summer time
    "Pacific/Apia",  # skipped a day
    "Etc/GMT+5",
)
EPOCH = datetime(1970, 1, 1)
names = st.sampled_from(NAMES)
#: 1820 to 2119, to the microsecond.
moments = st.datetimes(datetime(1820, 1, 1), datetime(2119, 12, 1))


def microseconds(moment: datetime) -> int:
    return (moment.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1)


def wall(name: str, instant_us: int) -> int:
    instant = (EPOCH + timedelta(microseconds=instant_us)).replace(tzinfo=STANDARD_UTC)
    return microseconds(instant.astimezone(ZoneInfo(name)))


def around_changes(name: str) -> list[int]:
    """Instants at, just before and some time around every change, in microseconds."""
    steps_us = (-25 * 3_600_000_000, -5_400_000_000, -1_800_000_000, -1, 0, 1, 1_800_000_000, 5_400_000_000)
    return [int(change) + step for change in Zone.named(name).changes_us for step in steps_us]


@given(names, st.lists(moments))
def test_the_wall_clock_is_zoneinfo_s(name: str, instants: list[datetime]) -> None:
    instants_us = [microseconds(instant) for instant in instants]
    assert Zone.named(name).to_local(instants_us).tolist() == [wall(name, instant) for instant in instants_us]


@pytest.mark.parametrize("name", NAMES)
def test_the_wall_clock_is_zoneinfo_s_at_every_change(name: str) -> None:
    instants = around_changes(name)
    assert Zone.named(name).to_local(instants).tolist() == [wall(name, instant) for instant in instants]


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("Africa/Freetown", datetime(1939, 9, 1)),  # on and off again within four days
        ("America/Recife", datetime(2000, 10, 8)),  # within a week
        ("Asia/Gaza", datetime(2040, 10, 20)),
    ],
)
def test_summer_time_of_a_few_days_is_not_overlooked(name: str, day: datetime) -> None:
    instants = [microseconds(day + timedelta(hours=hours)) for hours in range(-500, 500)]
    walls = [wall(name, instant) for instant in instants]
    assert len({local - instant for local, instant in zip(walls, instants, strict=True)}) == 2
    assert Zone.named(name).to_local(instants).tolist() == walls


@pytest.mark.parametrize("name", NAMES)
def test_the_instant_of_a_wall_time_is_that_of_fold_zero_at_every_change(name: str) -> None:
    zone = Zone.named(name)
    offsets = {int(offset) for offset in zone.offsets_us}
    walls = [instant + offset for instant in around_changes(name)[::3] for offset in offsets]
    local = [EPOCH + timedelta(microseconds=each) for each in walls]
    expected = [microseconds(each.replace(tzinfo=ZoneInfo(name)).astimezone(STANDARD_UTC)) for each in local]
    assert zone.to_utc(walls).tolist() == expected


@given(names, moments)
def test_there_and_back_is_the_same_instant_or_the_earlier_of_two(name: str, moment: datetime) -> None:
    zone, instant = Zone.named(name), microseconds(moment)
    back = int(zone.to_utc(zone.to_local(instant)))
    assert back <= instant
    assert wall(name, back) == wall(name, instant)


def test_an_ambiguous_wall_time_is_the_earlier_instant() -> None:
    twice = microseconds(datetime(2024, 10, 27, 2, 30))
    assert Zone.named("Europe/Paris").to_utc(twice) == microseconds(datetime(2024, 10, 27, 0, 30))


def test_a_skipped_wall_time_moves_forward_by_what_was_skipped() -> None:
    never = microseconds(datetime(2024, 3, 31, 2, 20))
    zone = Zone.named("Europe/Paris")
    assert zone.to_local(zone.to_utc(never)) == microseconds(datetime(2024, 3, 31, 3, 20))


def test_the_first_instant_of_a_skipped_wall_time_is_the_change() -> None:
    never = microseconds(datetime(2024, 3, 31, 2, 20))
    assert Zone.named("Europe/Paris").first_us(never) == microseconds(datetime(2024, 3, 31, 1, 0))
    assert Zone.named("Europe/Paris").past_us(never) == microseconds(datetime(2024, 3, 31, 1, 0))


@settings(max_examples=60)
@given(names.filter(lambda name: len(Zone.named(name).changes_us) > 0), st.data())
def test_first_and_past_are_what_watching_the_clock_finds(name: str, data: st.DataObject) -> None:
    zone = Zone.named(name)
    minute_us = 60 * MICROSECONDS
    change = int(data.draw(st.sampled_from(zone.changes_us.tolist())))
    instants = change + np.arange(-3_000, 3_000) * minute_us
    walls = zone.to_local(instants)  # checked against zoneinfo above
    local = data.draw(st.sampled_from(walls[1_400:4_600].tolist()), label="wall time") // minute_us * minute_us
    local += data.draw(st.sampled_from([0, 30 * minute_us, 60 * minute_us]), label="into a gap, perhaps")
    first = int(instants[np.argmax(walls >= local)])
    past = int(instants[np.flatnonzero(walls < local)[-1]]) + minute_us
    assert 0 <= first - int(zone.first_us(local)) < minute_us  # watched once a minute
    assert 0 <= past - int(zone.past_us(local)) < minute_us


@given(names, moments)
def test_the_clock_shows_a_wall_time_between_its_first_instant_and_the_past(name: str, moment: datetime) -> None:
    zone, instant = Zone.named(name), microseconds(moment)
    local = zone.to_local(instant)
    assert int(zone.first_us(local)) <= instant < int(zone.past_us(local + 1))
    assert int(zone.to_local(zone.first_us(local) - 1)) < local
    assert int(zone.to_local(zone.past_us(local))) >= local


def test_before_the_first_change_the_clock_shows_local_mean_time() -> None:
    noon = microseconds(datetime(1830, 6, 1, 12))
    assert Zone.named("Europe/Paris").to_local(noon) - noon == (9 * 60 + 21) * MICROSECONDS
    assert Zone.named("Asia/Manila").to_local(noon) - noon == -57_368 * MICROSECONDS  # a day behind until 1844


def test_utc_hands_the_very_same_array_back() -> None:
    instants = np.arange(5)
    zone = Zone.named("UTC")
    for convert in (zone.to_local, zone.to_utc, zone.first_us, zone.past_us):
        assert convert(instants) is instants
    assert Zone.named("Etc/UTC").to_local(instants) is instants


def test_equal_names_make_equal_zones_that_share_one_table() -> None:
    one, other = Zone.named("Asia/Kolkata"), Zone.named("Asia/Kolkata")
    assert one == other
    assert hash(one) == hash(other)
    assert one != UTC
    assert one.changes_us is other.changes_us
    with pytest.raises(ValueError, match="read-only"):
        one.changes_us[0] = 0


def test_a_zone_survives_a_trip_between_processes() -> None:
    zone = Zone.named("Asia/Kolkata")
    again = pickle.loads(pickle.dumps(zone))
    assert again == zone
    assert again.to_local([0]).tolist() == [19_800 * MICROSECONDS]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("Europe/Pariss", "no time zone 'Europe/Pariss'; close names are Europe/Paris, "),
        ("asia/kolkatta", "no time zone 'asia/kolkatta'; close names are Asia/Kolkata"),
        ("Mars/Olympus_Mons_Base", "no time zone 'Mars/Olympus_Mons_Base'; names look like Europe/Paris or UTC"),
        ("Europe", "no time zone 'Europe'"),
        ("../etc/passwd", r"no time zone '\.\./etc/passwd'"),
        ("", "no time zone ''"),
    ],
)
def test_an_unknown_zone_is_refused_with_close_names(name: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as raised:
        Zone.named(name)
    assert str(raised.value).count(", ") <= 2

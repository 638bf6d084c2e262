import json
import pickle

import numpy as np
import pytest

from synopsis.core import errors
from synopsis.core.errors import BadSpec, DuplicateFeature
from synopsis.core.sizes import format_bytes, parse_bytes
from synopsis.core.spec import MOST_FEATURES, Spec

GOOD = {"lat": "lat", "lon": "lon", "time": "ts", "features": ["a", "b"]}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"features": []}, "at least one"),
        ({"features": "temp"}, r"give a list of names, such as \['temp'\]"),
        ({"features": [f"f{k}" for k in range(MOST_FEATURES + 1)]}, "at most 63"),
        ({"features": [""]}, "not the name of a column"),
        ({"features": None}, "features is None; give a list of names"),
        ({"features": 5}, "features is 5; give a list of names"),
        ({"lat": ""}, "lat is ''"),
        ({"entity": ""}, "entity is ''; give the name of a column"),
        ({"name_column": "", "value_column": "v"}, "name_column is ''; give the name of a column"),
        ({"bucket": None}, "bucket is None; give a span of time"),
        ({"bucket": 5}, "bucket is 5; give a span of time"),
        ({"precision": 0}, "1 to 12"),
        ({"precision": 13}, "1 to 12"),
        ({"precision": 4.0}, "1 to 12"),
        ({"precision": "4"}, "1 to 12"),
        ({"memory": "lots"}, "8MB"),
        ({"memory": -1}, "positive"),
        ({"memory": True}, "give bytes"),
        ({"exact_at": "4,1mo"}, r"such as \(4, '1mo'\)"),
        ({"exact_at": (0, "1mo")}, "geohash length"),
        ({"exact_at": 4}, r"such as \(4, '1mo'\)"),
        ({"timezone": "Mars/Olympus"}, "no time zone 'Mars/Olympus'"),
        ({"time_unit": "hours"}, "time_unit"),
        ({"name_column": "name"}, "both name_column and value_column"),
        ({"bands": ["1d"]}, "not in this release"),
        ({"keep_observations": True}, "not in this release"),
    ],
)
def test_a_spec_that_makes_no_sense_says_what_to_give_instead(changed, words):
    with pytest.raises(BadSpec, match=words):
        Spec(**(GOOD | changed))


def test_a_feature_named_twice_is_named_in_the_error():
    with pytest.raises(DuplicateFeature, match="'a' is named twice"):
        Spec(**(GOOD | {"features": ["a", "b", "a"]}))


def test_memory_takes_bytes_and_texts():
    assert Spec(**GOOD, memory="8MB").memory == 8_000_000 == Spec(**GOOD, memory=8_000_000).memory
    assert parse_bytes("1 GiB") == 2**30
    assert format_bytes(1_500) == "1.50 KB"


def test_numbers_of_numpy_are_numbers():
    spec = Spec(**GOOD, precision=np.int64(5), exact_at=(np.int32(4), "1mo"), memory=np.int64(90_000))
    assert (spec.memory, type(spec.memory)) == (90_000, int)
    assert json.loads(json.dumps(spec.to_dict()))["precision"] == 5
    assert type(spec.precision) is int


def test_a_spec_from_a_later_release_is_refused():
    with pytest.raises(BadSpec, match="no field 'colour'"):
        Spec.from_dict(Spec(**GOOD).to_dict() | {"colour": "red"})


@pytest.mark.parametrize(
    "error",
    [
        errors.UnknownColumn("temp", ("temp_c", "rh")),
        errors.NotNumeric("name", "string"),
        errors.DuplicateFeature("a"),
        errors.BudgetTooSmall("exact_at=(4, '1mo')", 2_000, 1_000),
        errors.EmptySource("rows.csv", 3),
        errors.RowsRejected({"no place": 2}),
        errors.ForeignFormat("w.syn", "9", "1"),
        errors.SpecDiffers("w.syn", {"timezone": ("'UTC'", "'Asia/Tokyo'")}),
        errors.NoJava("java 11 on PATH"),
        errors.SparkFailed("it broke", "a.log"),
        errors.BadQuery("no", 1, 2),
        errors.UnknownFeature("temp", ("temp_c",), 1, 8),
        errors.NotKept("no paths", 1, 2),
    ],
)
def test_errors_survive_a_trip_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_an_unknown_column_suggests_the_nearest():
    assert "did you mean 'temp_c'?" in str(errors.UnknownColumn("temp", ("temp_c", "rh")))
    assert "it has temp_c, rh" in str(errors.UnknownColumn("xyz", ("temp_c", "rh")))

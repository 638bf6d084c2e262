import numpy as np
import pytest

from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Comoments, Moments
from synopsis.sketch.strands import Strands
from synopsis.sketch.tree import Tree


def tree_of(planes, paths):
    """A tree whose leaves each hold one row with the value of its position."""
    values = np.arange(float(len(paths)))
    moments = Moments.joined([Moments.of([value]) for value in values])
    shaped = Moments(*(getattr(moments, name)[None, :] for name in ("count", "mean", "spread", "low", "high")))
    return Tree.of(planes, np.array(paths).T, np.ones(len(paths), np.int64), shaped, Comoments.empty(0, len(paths)))


def test_vertices_are_distinct_prefixes_and_edges_lead_to_all_but_the_root():
    tree = tree_of(("a", "b"), [(0, 0), (0, 1), (1, 0)])
    assert tree.vertices_by_plane == (2, 3)
    assert (tree.vertices, tree.leaves, tree.edges) == (6, 3, 8)


def test_leaves_with_the_same_path_are_pooled():
    tree = tree_of(("a", "b"), [(0, 0), (0, 0), (1, 0)])
    assert tree.leaves == 2
    assert tree.rows.tolist() == [2, 1]
    assert tree.moments.mean[0].tolist() == [0.5, 2.0]


def test_a_plane_with_low_fan_out_goes_to_the_root_and_the_reversed_order_costs_more():
    random = np.random.default_rng(0)
    paths = [(place, flag) for place in range(100) for flag in {int(x) for x in random.integers(0, 2, 3)}]
    compact = tree_of(("place", "flag"), paths).compacted()
    assert compact.planes == ("flag", "place")
    assert compact.vertices < compact.reversed().vertices
    assert compact.fan_out["flag"] == 2.0


def test_the_order_of_planes_changes_no_leaf():
    paths = [(0, 5, 1), (0, 6, 1), (2, 5, 0), (1, 1, 1)]
    tree = tree_of(("a", "b", "c"), paths)
    again = tree.ordered(("c", "a", "b")).ordered(("a", "b", "c"))
    assert np.array_equal(again.codes, tree.codes)
    assert np.array_equal(again.moments.mean, tree.moments.mean)


def test_a_vertex_has_the_statistics_of_the_rows_under_it():
    layout = Layout(("x", "y"), 20, "1d")
    random = np.random.default_rng(1)
    values = random.normal(size=(2, 300))
    latitude, longitude = random.choice([1.0, 2.0, 3.0], 300), np.full(300, 7.0)
    instants = random.integers(0, 5 * 86_400_000_000, 300)
    tree = Tree.of_strands(Strands.of(layout, latitude, longitude, instants, values)).compacted()
    day_two = instants // 86_400_000_000 == 2
    rows, moments, comoments = tree.vertex({"bucket": 2})
    assert rows == day_two.sum()
    assert moments.mean[:, 0] == pytest.approx(values[:, day_two].mean(axis=1))
    expected = np.cov(values[:, day_two], bias=True)[0, 1] * rows
    assert comoments.cross[0, 0] == pytest.approx(expected)
    assert tree.vertex({})[0] == 300
    assert tree.vertex({"bucket": 99})[0] == 0


def test_an_unknown_plane_is_named():
    with pytest.raises(ValueError, match="no plane 'wind'"):
        tree_of(("a",), [(0,)]).vertex({"wind": 1})


def test_an_empty_tree_is_a_root():
    tree = Tree.of_strands(Strands.empty(Layout(("x",), 20, "1d")))
    assert (tree.vertices, tree.leaves, tree.edges) == (1, 0, 0)
    assert tree.compacted().vertices == 1

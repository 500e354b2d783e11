from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from evalkit.errors import StatsError
from evalkit.stats.multiplicity import benjamini_hochberg, holm

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(p_values)
def test_benjamini_hochberg_is_that_of_scipy(values) -> None:
    assert benjamini_hochberg(values).adjusted == pytest.approx(false_discovery_control(values))


@given(p_values)
def test_holm_rejects_step_by_step_as_defined(values) -> None:
    found = holm(values)
    rejected, going = set(), True
    for rank, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        going = going and values[i] * (len(values) - rank) <= 0.05
        if going:
            rejected.add(i)
    assert {i for i, r in enumerate(found.reject) if r} == rejected


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
@given(values=p_values, random=st.randoms(use_true_random=False))
def test_order_does_not_matter_and_nothing_becomes_smaller(adjust, values, random) -> None:
    order = random.sample(range(len(values)), len(values))
    found, mixed = adjust(values), adjust([values[i] for i in order])
    assert mixed.adjusted == pytest.approx([found.adjusted[i] for i in order])
    assert all(a >= p for a, p in zip(found.adjusted, values, strict=True))
    assert max(found.adjusted) <= 1
    assert found.raw == tuple(values)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_nan_stays_nan_and_does_not_count(adjust) -> None:
    found = adjust([0.01, math.nan, 0.04])
    assert math.isnan(found.adjusted[1])
    assert not found.reject[1]
    without = adjust([0.01, 0.04]).adjusted
    assert (found.adjusted[0], found.adjusted[2]) == without
    assert adjust([]).adjusted == ()
    with pytest.raises(StatsError, match="outside"):
        adjust([1.2])

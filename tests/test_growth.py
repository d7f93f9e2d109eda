"""The growth of processes in a long run."""

from __future__ import annotations

import pytest

from benchmarks.growth import Growth, Sample


def test_memory_grows_by_the_slope_within_each_start_after_its_warm_up():
    growth = Growth()
    for process_id, begin in ((1, 100.0), (2, 500.0)):
        growth.samples["web"][process_id] = [
            Sample(at, memory=begin + (at if at <= 180 else 180 + at / 36), files=20) for at in range(0, 1200, 15)
        ]

    assert growth.memory_slopes() == {"web": pytest.approx(100)}
    ((name, _, slope, files, file_slope, starts),) = growth.rows()
    assert (name, slope, files, file_slope, starts) == ("web", pytest.approx(100), 20, 0, 2)

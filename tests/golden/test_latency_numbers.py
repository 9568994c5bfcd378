"""Latencies of a queue with one stall, worked by hand and with plain NumPy.

Reported of other software: https://github.com/thelastpickle/tlp-stress/issues/131 and
https://github.com/scylladb/scylla-bench/pull/47. A load generator that waits for the
stalled answer sends nothing meanwhile, and so never sees what others would have waited.
"""

import numpy as np
import pytest

from infoset.pipeline.latency.open_loop import response_times
from infoset.pipeline.latency.percentiles import summary

# 200 requests, one every 10 ms, of 1 ms each but for one stall of 500 ms.
INTENDED_MS = 10.0 * np.arange(200)
SERVICE_MS = np.where(np.arange(200) == 50, 500.0, 1.0)


def test_response_counts_from_the_intended_start_and_sees_the_stall() -> None:
    response = response_times(INTENDED_MS, SERVICE_MS)
    told = summary(response)
    # Times are multiples of 1 ms and the weights of linear percentiles have two
    # decimals: rounding is all that may differ.
    assert told["p50_us"] == pytest.approx(1.0, rel=1e-12)
    assert told["p90_us"] == pytest.approx(320.9, rel=1e-12)
    assert told["p95_us"] == pytest.approx(410.45, rel=1e-12)
    assert told["p99_us"] == pytest.approx(482.09, rel=1e-12)
    assert told["max_us"] == 500.0
    assert int((response > 1.0).sum()) == 56


def test_service_alone_does_not_see_it() -> None:
    told = summary(SERVICE_MS)
    assert told["p99_us"] == 1.0
    assert told["max_us"] == 500.0

"""Streams in machine code that numba makes from a network's weights.

`FastStream` serves one entity, `StreamBatch` thousands at once. Nothing is compiled at
import. The files, in the order in which an event meets them:

- `stream`, `batch`, `tick_events`: what Python calls, and what it is refused
- `entries`: the compiled functions behind that; `single` and `memories`: their arrays
- `event_vector`: an event becomes numbers
- `linear_rows`, `softmax_row`: an update and a forecast, layer by layer (`layers`)
- `linear_memory` (with `features`), `softmax_memory`: the state takes in an event, and
  is read
- `query_vector`, `quantiles`: the two ends of a forecast
- `states`: what is remembered, as a value

`packed_weights` copies the network into one array; `layout` says where things lie in it
and in all others; `arithmetic` has the inner loops and `compiled` says how they are
compiled.
"""

from .batch import StreamBatch
from .packed_weights import PackedWeights, packed_weights, unserved
from .stream import FastStream
from .tick_events import TickEvents

__all__ = [
    "FastStream",
    "PackedWeights",
    "StreamBatch",
    "TickEvents",
    "packed_weights",
    "unserved",
]

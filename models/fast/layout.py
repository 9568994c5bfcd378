"""Where things lie in the flat arrays that the compiled code reads and writes.

Compiled code takes constants of a module as they are, so these names cost nothing.
"""

from __future__ import annotations

from typing import Final

# A product reads this many inputs at a time: rows of weights are filled up with zeros.
BLOCK: Final = 8
# What a block of rows works on stays in the fastest memory.
BLOCK_ROWS: Final = 16
# Events in a tile of a cache.
TILE: Final = 128
# float32 and float64 numbers in a cache line; parts begin with one, because vectors
# that lie across two take twice the time.
LINE: Final = 16
WIDE_LINE: Final = 8

# --- whole numbers of a network: sizes, then offsets into its weights ---
WIDTH: Final = 0  # D
HIDDEN: Final = 1
HEADS: Final = 2
KEY: Final = 3  # K and V of a head
FEATURES: Final = 4  # R
PADDED_FEATURES: Final = 5  # R up to a multiple of BLOCK
LAYERS: Final = 6  # the readout is the last one
MAP_KIND: Final = 7
QUANTILES: Final = 8
STREAM_ROWS: Final = 9
CLOCK_ROWS: Final = 10
CLOCK_BIAS: Final = 11
CHANNEL_ROWS: Final = 12
MEAN: Final = 13
DEVIATION: Final = 14
QUERY_ROWS: Final = 15
QUERY_BIAS: Final = 16
ENTITY_ROWS: Final = 17
GAIN_ROWS: Final = 18
QUERY_NORM: Final = 19
QUERY: Final = 20
LAST_NORM: Final = 21
ADJUST: Final = 22
ADJUST_BIAS: Final = 23
BASE: Final = 24
# Offsets into the whole numbers themselves.
CHANNEL_OFFSET: Final = 25
NUM_VALUES: Final = 26
USED: Final = 27

LAYER_SIZE: Final = 28  # float64 numbers of a linear layer, rows of a tile of a cache
NUM_STREAMS: Final = 29
PADDED_KEY: Final = 30  # K up to a multiple of BLOCK
WIDE_ROOM: Final = 31  # float64 numbers that attention works in
# Of a single stream's own copy: values of an event, and where its reals lie.
EVENT_WIDTH: Final = 32
VALUES_START: Final = 33
WIDE_START: Final = 34
WORK_START: Final = 35

# One row of these for each layer.
LAYER_TABLE: Final = 36
NORM: Final = 0
PROJECTION: Final = 1  # queries, keys and values; of the readout keys and values
RATE: Final = 2  # forgetting; -1 without
MAP: Final = 3
FLOOR: Final = 4
OUTPUT: Final = 5
FEED_NORM: Final = 6
RISE: Final = 7
RISE_BIAS: Final = 8
FALL: Final = 9
FALL_BIAS: Final = 10
LAYER_COLUMNS: Final = 11

# --- kinds of attention ---
ELU1: Final = 0
RELU: Final = 1
SQUARED_RELU: Final = 2
FAVOR: Final = 3
HEDGEHOG: Final = 4
SOFTMAX: Final = 5

# --- whole numbers of a stream ---
COUNT: Final = 0
NEWEST: Final = 1
PERIOD: Final = 2
ENTITY: Final = 3
SCALE_STREAM: Final = 4
SCALE_PLACE: Final = 5
CAPACITY: Final = 6  # of a cache, in tiles
NUM_COUNTERS: Final = 8

# --- float64 numbers of a stream: the scale's, then the sums of each linear layer ---
WEIGHT: Final = 0
SQUARE: Final = 1
UNIT: Final = 2
DECAY: Final = 3
PRIOR: Final = 4
PRIOR_WEIGHT: Final = 5
SUMS: Final = 8

# --- whole numbers of an event ---
STREAM: Final = 0
OWN: Final = 1
REVISION: Final = 2
EVENT_TIME: Final = 3
AVAILABLE_AT: Final = 4
EVENT_PERIOD: Final = 5
WHOSE: Final = 6  # the stream's row in the memory
NUM_EVENT_NUMBERS: Final = 8

# --- what an update or a forecast answers ---
DONE: Final = 0
LATE: Final = 1
UNKNOWN_STREAM: Final = 2
FULL: Final = 3
NOT_A_FORECAST: Final = 4

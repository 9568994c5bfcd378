"""128-bit digests of events, and their sums.

An information set is a slice of a timeline, and millions of slices overlap. Each event
therefore gets one digest, a slice the sum of its events' digests modulo 2^128, and any
slice's sum is the difference of two prefix sums. A digest is two 64-bit lanes, `hi` and
`lo`, each mixed with its own seed. The purpose is to tell information sets apart, not
to withstand somebody who constructs a collision on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from jaxtyping import Int64, UInt64

_SEEDS = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], dtype=np.uint64)
_MULTIPLIERS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
# Every NaN is the same missing value, whatever its payload bits.
_MISSING = np.uint64(0x7FF8_0000_0000_0000)


def text_words(texts: Sequence[str]) -> UInt64[np.ndarray, " n"]:
    """Return a 64-bit word per text (BLAKE2b), equal for equal texts on any machine."""
    words = [
        int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
        for text in texts
    ]
    return np.array(words, dtype=np.uint64)


def float_words(values: np.ndarray) -> np.ndarray:
    """Return the bits of float64 values; all NaNs share one word and -0.0 is 0.0."""
    canonical = np.ascontiguousarray(values, dtype=np.float64) + 0.0
    words = canonical.view(np.uint64).copy()
    words[np.isnan(canonical)] = _MISSING
    return words


def _mix(words: np.ndarray) -> np.ndarray:
    # The finaliser of SplitMix64 (Steele, Lea, Flood 2014, OOPSLA, fig. 17): a
    # bijection of 64-bit words in which each input bit reaches each output bit.
    words = (words ^ (words >> np.uint64(30))) * _MULTIPLIERS[0]
    words = (words ^ (words >> np.uint64(27))) * _MULTIPLIERS[1]
    mixed: np.ndarray = words ^ (words >> np.uint64(31))
    return mixed


def event_digests(words: UInt64[np.ndarray, "n c"]) -> UInt64[np.ndarray, "n 2"]:
    """Return the digest of each row of `words`.

    Parameters
    ----------
    words : ndarray of shape (n, c)
        The identity, clocks and values of n events as 64-bit words. The column's place
        matters: swapping two unequal words gives another digest.

    Returns
    -------
    ndarray of shape (n, 2)
        Lanes (hi, lo).
    """
    with np.errstate(over="ignore"):
        lanes = np.tile(_SEEDS, (len(words), 1))
        for column in range(words.shape[1]):
            lanes = _mix(lanes * _MULTIPLIERS[1] + words[:, column, None] + _SEEDS)
    return lanes


def prefix_sums(digests: UInt64[np.ndarray, "n 2"]) -> UInt64[np.ndarray, "m 2"]:
    """Return the n + 1 prefix sums of digests modulo 2^128, starting with zero."""
    sums = np.zeros((len(digests) + 1, 2), dtype=np.uint64)
    with np.errstate(over="ignore"):
        np.cumsum(digests[:, 1], out=sums[1:, 1])
        # A 64-bit sum wrapped around exactly where it is below the addend's sum so far.
        carries = np.cumsum(sums[1:, 1] < digests[:, 1], dtype=np.uint64)
        np.cumsum(digests[:, 0], out=sums[1:, 0])
        sums[1:, 0] += carries
    return sums


def slice_fingerprints(
    sums: UInt64[np.ndarray, "m 2"],
    start: Int64[np.ndarray, " k"],
    stop: Int64[np.ndarray, " k"],
) -> np.ndarray:
    """Return the fingerprint of each slice [start, stop) as 32 hexadecimal digits."""
    with np.errstate(over="ignore"):
        low = sums[stop, 1] - sums[start, 1]
        borrow = (sums[stop, 1] < sums[start, 1]).astype(np.uint64)
        high = sums[stop, 0] - sums[start, 0] - borrow
    return np.array(
        [f"{h:016x}{w:016x}" for h, w in zip(high.tolist(), low.tolist(), strict=True)],
        dtype=np.dtype("U32"),
    )


def combined_fingerprint(fingerprints: Sequence[str]) -> str:
    """Return one fingerprint for several information sets, in their order."""
    digest = blake2b(digest_size=16)
    for fingerprint in fingerprints:
        digest.update(bytes.fromhex(fingerprint))
    return digest.hexdigest()

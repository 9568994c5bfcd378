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
from jaxtyping import UInt64

_SEEDS = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], dtype=np.uint64)
_MULTIPLIERS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
_THIRTY, _TWENTY_SEVEN, _THIRTY_ONE = (np.uint64(bits) for bits in (30, 27, 31))
_BLOCK = 8192  # rows whose words stay in the processor's cache
_DIGITS = np.array([f"{octet:02x}" for octet in range(256)]).view(np.uint64)
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


def event_digests(
    words: Sequence[UInt64[np.ndarray, " n"]],
) -> UInt64[np.ndarray, "n 2"]:
    """Return the digest of each of n events.

    Parameters
    ----------
    words : sequence of ndarray of shape (n,)
        The identity, clocks and values of the events as 64-bit words, at least one
        column. A column's place matters: swapping two unequal words gives another
        digest.

    Returns
    -------
    ndarray of shape (n, 2)
        Lanes (hi, lo).
    """
    digests = np.empty((len(words[0]), 2), dtype=np.uint64)
    for start in range(0, len(digests), _BLOCK):
        block = slice(start, start + _BLOCK)
        for lane, seed in enumerate(_SEEDS):
            digests[block, lane] = _lane([column[block] for column in words], seed)
    return digests


def _lane(words: list[np.ndarray], seed: np.uint64) -> UInt64[np.ndarray, " n"]:
    mixed = np.full(len(words[0]), seed, dtype=np.uint64)
    shifted = np.empty_like(mixed)
    first, second = _MULTIPLIERS
    for word in words:
        np.multiply(mixed, second, out=mixed)
        np.add(mixed, word, out=mixed)
        np.add(mixed, seed, out=mixed)
        # The finaliser of SplitMix64 (Steele, Lea, Flood 2014, OOPSLA, fig. 17): a
        # bijection of 64-bit words in which each input bit reaches each output bit.
        for shift, multiplier in ((_THIRTY, first), (_TWENTY_SEVEN, second)):
            np.right_shift(mixed, shift, out=shifted)
            np.bitwise_xor(mixed, shifted, out=mixed)
            np.multiply(mixed, multiplier, out=mixed)
        np.right_shift(mixed, _THIRTY_ONE, out=shifted)
        np.bitwise_xor(mixed, shifted, out=mixed)
    return mixed


def prefix_sums(digests: UInt64[np.ndarray, "n 2"]) -> UInt64[np.ndarray, "m 2"]:
    """Return the n + 1 prefix sums of digests modulo 2^128, starting with zero."""
    sums = np.zeros((len(digests) + 1, 2), dtype=np.uint64)
    np.cumsum(digests[:, 1], out=sums[1:, 1])
    # A 64-bit sum wrapped around exactly where it is below the addend's sum so far.
    carries = np.cumsum(sums[1:, 1] < digests[:, 1], dtype=np.uint64)
    np.cumsum(digests[:, 0], out=sums[1:, 0])
    sums[1:, 0] += carries
    return sums


def added(
    first: UInt64[np.ndarray, "*shape 2"], second: UInt64[np.ndarray, "*other 2"]
) -> UInt64[np.ndarray, "*shape 2"]:
    """Return sums modulo 2^128, pair by pair."""
    total: np.ndarray = first + second
    total[..., 0] += total[..., 1] < second[..., 1]
    return total


def subtracted(
    first: UInt64[np.ndarray, "*shape 2"], second: UInt64[np.ndarray, "*other 2"]
) -> UInt64[np.ndarray, "*shape 2"]:
    """Return differences modulo 2^128, pair by pair."""
    difference: np.ndarray = first - second
    difference[..., 0] -= first[..., 1] < second[..., 1]
    return difference


def hexadecimal(words: UInt64[np.ndarray, "k 2"]) -> np.ndarray:
    """Return 128-bit numbers as 32 hexadecimal digits each."""
    # Two digits per byte, highest first: no Python number per fingerprint.
    octets = words.astype(">u8").view(np.uint8)
    text: np.ndarray = _DIGITS[octets].view(np.dtype("U32"))[:, 0]
    return text


def combined_fingerprint(fingerprints: Sequence[str]) -> str:
    """Return one fingerprint for several information sets, in their order."""
    digest = blake2b(digest_size=16)
    for fingerprint in fingerprints:
        digest.update(bytes.fromhex(fingerprint))
    return digest.hexdigest()

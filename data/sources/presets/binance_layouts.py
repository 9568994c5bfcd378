"""The columns of Binance's public files, and whether a file starts with their names.

Layout: https://github.com/binance/binance-public-data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

OHLCV = ("open", "high", "low", "close", "volume")
BinanceData = Literal["klines", "aggTrades", "trades"]


@dataclass(frozen=True)
class BinanceLayout:
    """The columns of a type of file, in its order.

    Attributes
    ----------
    columns : tuple of str
        Our names.
    num_required : int
        Files of futures leave out the last column of trades.
    headers : tuple of tuple of str
        What headers call the columns, as far as it is checked: in small letters and
        digits only.
    stamps : tuple of str
        The columns of times; the last one dates the row.
    numbers, flags : tuple of str
        The columns that are values.
    sequence : str, optional
        The column of the ids.
    """

    columns: tuple[str, ...]
    num_required: int
    headers: tuple[tuple[str, ...], ...]
    stamps: tuple[str, ...]
    numbers: tuple[str, ...]
    flags: tuple[str, ...] = ()
    sequence: str | None = None

    def names_of(self, first: list[str], file: str) -> tuple[tuple[str, ...], bool]:
        """Return our names of a file's columns, and whether its first line is a header.

        Raises
        ------
        ValueError
            If the line has another number of cells, or the header other names.
        """
        known = self.columns
        if not self.num_required <= len(first) <= len(known):
            raise ValueError(
                f"{file} must have the {len(known)} columns {', '.join(known)}; got "
                f"{len(first)} cells in its first line. Check `data`."
            )
        if first[0].strip().lstrip("-").isdigit():
            return known[: len(first)], False
        for place, (cell, names) in enumerate(zip(first, self.headers, strict=False)):
            if re.sub("[^a-z0-9]", "", cell.lower()) not in names:
                raise ValueError(
                    f"column {place + 1} of {file} must be {known[place]}; got a header "
                    f"with {cell!r}. Check `data`, or declare the table without `preset`."
                )
        return known[: len(first)], True


BINANCE_LAYOUTS: dict[BinanceData, BinanceLayout] = {
    "klines": BinanceLayout(
        columns=(
            "open_time",
            *OHLCV,
            "close_time",
            "quote_volume",
            "num_trades",
            "taker_base_volume",
            "taker_quote_volume",
            "ignore",
        ),
        num_required=12,
        headers=(("opentime",), *((name,) for name in OHLCV), ("closetime",)),
        stamps=("open_time", "close_time"),
        numbers=(
            *OHLCV,
            "quote_volume",
            "num_trades",
            "taker_base_volume",
            "taker_quote_volume",
        ),
    ),
    "aggTrades": BinanceLayout(
        columns=(
            "agg_trade_id",
            "price",
            "quantity",
            "first_id",
            "last_id",
            "time",
            "buyer_is_maker",
            "is_best_match",
        ),
        num_required=7,
        headers=(
            ("aggtradeid", "aggregatetradeid"),
            ("price",),
            ("quantity", "qty"),
            ("firsttradeid", "firstid"),
            ("lasttradeid", "lastid"),
            ("transacttime", "timestamp", "time"),
            ("isbuyermaker", "buyerismaker", "wasthebuyerthemaker"),
        ),
        stamps=("time",),
        numbers=("price", "quantity"),
        flags=("buyer_is_maker",),
        sequence="agg_trade_id",
    ),
    "trades": BinanceLayout(
        columns=(
            "trade_id",
            "price",
            "quantity",
            "quote_quantity",
            "time",
            "buyer_is_maker",
            "is_best_match",
        ),
        num_required=6,
        headers=(
            ("id", "tradeid"),
            ("price",),
            ("quantity", "qty"),
            ("quoteqty", "quotequantity", "baseqty"),
            ("time", "timestamp"),
            ("isbuyermaker", "buyerismaker"),
        ),
        stamps=("time",),
        numbers=("price", "quantity"),
        flags=("buyer_is_maker",),
        sequence="trade_id",
    ),
}

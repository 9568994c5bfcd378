"""Formats of vendors, with the clocks that are known of them."""

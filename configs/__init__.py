"""Shipped experiments: one YAML file each."""

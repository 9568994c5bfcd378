"""Events on disk, append-only, readable as they stood at any earlier ingest."""

"""Live forecasts from a feed of events: `infoset stream`."""

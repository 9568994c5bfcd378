"""Settings that must stand before anything is imported."""

import os

# Tests run side by side; threads of one would only wait for those of another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

"""Peak memory of one pass of attention above its inputs.

Every figure comes from a process of its own, which first runs the same form on 64
events, so that libraries and threads have what they need, and then makes the inputs
(and the gradient of the output, with backward). Memory that the C library holds without
use is given back at that point, for a pass could take it unseen. The kernel's
high-water mark of resident memory is set back (Linux: a 5 written to
/proc/self/clear_refs) and read after one pass. What was resident before is subtracted, and so are the
gradients of the inputs, which count as inputs: any way to train has both. The output
and all that the pass keeps or needs on its way remain.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

import torch
from attention_cells import Cell, forms, prepare_process, run_once

_WARM_UP_EVENTS = 64
_PROCESS = Path("/proc/self")


def peak_megabytes(cell: Cell, form: str) -> float | None:
    """Return the peak above inputs in 10^6 bytes; None if there is nothing to run.

    That is: the form is of a peer that is not installed, or this system does not tell
    high-water marks.
    """
    report = subprocess.run(
        [sys.executable, __file__, json.dumps([*astuple(cell), form])],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    peak: float | None = json.loads(report.stdout.splitlines()[-1])
    return peak


def _measure(cell: Cell, form: str) -> float | None:
    prepare_process()
    if not (_PROCESS / "clear_refs").exists():
        return None
    known = forms(Cell(cell.width, _WARM_UP_EVENTS, cell.backward))
    if form not in known:
        return None
    attend, few = known[form]
    run_once(attend, few, torch.ones_like(few[2]) if cell.backward else None)
    attend, inputs = forms(cell)[form]
    upstream = torch.ones_like(inputs[2]) if cell.backward else None
    ctypes.CDLL(None).malloc_trim(0)
    before = _resident("VmRSS")
    (_PROCESS / "clear_refs").write_text("5")
    run_once(attend, inputs, upstream)
    peak = _resident("VmHWM")
    gradients = sum(0 if x.grad is None else x.grad.nbytes for x in inputs)
    return (peak - before - gradients) / 1e6


def _resident(name: str) -> int:
    """Return a size that the kernel tells of this process, in bytes."""
    for line in (_PROCESS / "status").read_text().splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise ValueError(f"/proc/self/status must have a line {name}; it has none.")


if __name__ == "__main__":
    *sizes, chosen = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(_measure(Cell(*sizes), chosen)) + "\n")

"""Forms of EDGAR whose stamps mean something else than a filer's filing."""

from __future__ import annotations

# Letters between staff and filer, and drafts: written, dated and accepted on one day,
# published weeks or months later. The daily index of 2020-03-18 lists such documents
# dated from 2019-07-18 on.
PUBLISHED_LATER = (
    *("CORRESP", "UPLOAD", "LETTER", "SEC STAFF LETTER", "SEC STAFF ACTION"),
    *("DRS", "DRS/A", "DRSLTR", "DRSLTR/A", "DOS", "DOS/A", "DOSLTR", "DOSLTR/A"),
)
# Posted by the staff or by EDGAR itself at any hour: they tell nothing of the clock.
NOT_BY_FILERS = ("EFFECT", "QUALIF", *PUBLISHED_LATER)

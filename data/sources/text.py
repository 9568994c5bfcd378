"""Texts as numbers, by a hash that learns nothing.

An encoder that was trained on later texts knows the future of earlier ones. A hash of
words has no state: a text's numbers depend on that text alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from infoset.data.text_encoders import text_names


def hashed_texts(texts: Sequence[str | None], num_features: int) -> pd.DataFrame:
    """Return the hashed words of each text, and their count.

    Parameters
    ----------
    texts : sequence of str or None
    num_features : int
        Number of buckets that words are hashed into.

    Returns
    -------
    DataFrame
        `text_00`, `text_01` ...: signed counts of the lower-cased words of two letters
        or more in each bucket, scaled to length 1 per text (all zero for a text
        without such words); `num_words`: number of words between white space. All are
        missing where the text is.

    References
    ----------
    .. [1] Weinberger, Dasgupta, Langford, Smola, Attenberg (2009), "Feature hashing
       for large scale multitask learning", ICML, doi:10.1145/1553374.1553516
    """
    # scikit-learn takes half a second to import, and most sources have no text.
    from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415

    vectorizer = HashingVectorizer(
        n_features=num_features, alternate_sign=True, norm="l2", lowercase=True
    )
    names = text_names(num_features)
    missing = np.array([text is None for text in texts], dtype=bool)
    written = ["" if text is None else text for text in texts]
    hashed = pd.DataFrame(vectorizer.transform(written).toarray(), columns=names)
    hashed["num_words"] = [float(len(text.split())) for text in written]
    hashed[missing] = np.nan
    return hashed

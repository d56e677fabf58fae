"""What can be had without a network: ``python examples/fine_tune/bag_of_words.py``.

Counts of words and pairs of words, weighted by how rare they are, and a logistic regression.
"""

from __future__ import annotations

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from docstrings import samples


def score(penalty: float, split: str = "val") -> float:
    """Return the accuracy on a split of the model that was fitted to the training split."""
    model = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)),
        LogisticRegression(C=1 / penalty, max_iter=1000),
    )
    model.fit(*zip(*samples("train"), strict=True))
    return float(model.score(*zip(*samples("test" if split == "test" else "val"), strict=True)))


if __name__ == "__main__":
    best = max((1.0, 0.3, 0.1, 0.03, 0.01), key=score)
    print(f"penalty {best}: val {score(best):.4f}, test {score(best, 'test'):.4f}")

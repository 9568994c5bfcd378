"""Walk-forward folds, purged by each label's own span."""

from .spans import purge
from .walk_forward import Fold, WalkForward, fold_table

__all__ = ["Fold", "WalkForward", "fold_table", "purge"]

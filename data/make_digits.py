"""Writes digits.npy from the copy of the data set that scikit-learn carries: python make_digits.py (needs scikit-learn)."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

digits = load_digits()
rows = np.concatenate([digits.data, digits.target[:, None]], axis=1).astype(np.uint8)
assert rows.shape == (1797, 65) and (rows[:, :64] == digits.data).all()
np.save(Path(__file__).with_name("digits.npy"), rows)

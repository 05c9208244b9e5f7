"""Cheaper forms of what a line calls in a library: a row for each, by the package and the function's own name.

Each form gives the same result, or what it is mostly used for; the user's line says whether it applies.
"""

from tfdoctor.facts.run_work.line_groups import package_and_name

SCORES = "Count once, with one confusion_matrix or np.bincount, and compute all scores from the counts"
BYTES = "Write arrays as bytes (np.save, np.savez), if there are any: as text each number is converted"
MEL = "Make the mel filters once (librosa.filters.mel), and multiply the spectra by them"
INDICES = "Draw indices for a whole batch with NumPy, and take the rows of an array"
FORMS = {
    ("numpy", "savez_compressed"): "Write with np.savez: compressing takes most of the time",
    ("numpy", "pad"): "Work on a slice of the result, without padding to its size",
    ("numpy", "inv"): "Solve with np.linalg.solve, without the inverse",
    ("numpy", "argsort"): "Where only the first ones are used, np.argpartition finds them without sorting all",
    ("numpy", "unique"): "np.bincount counts small whole numbers without sorting them",
    ("scipy", "sqrtm"): "Of a symmetric matrix, np.linalg.eigh has the root, and eigvalsh alone its trace",
    ("scipy", "cdist"): "Find neighbours with scipy.spatial.cKDTree, without all distances",
    ("sklearn", "silhouette_score"): "Score a sample of the examples (sample_size)",
    **{("sklearn", f"{name}_score"): SCORES for name in ("f1", "precision", "recall", "jaccard", "accuracy")},
    **{("json", name): BYTES for name in ("dump", "dumps", "load", "loads")},
    ("h5py", "__getitem__"): "Write the file with chunks of what one read takes: a read decompresses whole chunks",
    ("copy", "deepcopy"): "Copy only what changes",
    **{("random", name): INDICES for name in ("sample", "choices", "choice", "shuffle")},
    ("networkx", "non_edges"): "Draw pairs with NumPy, and leave out the edges, without listing all pairs",
    **{("librosa", name): MEL for name in ("melspectrogram", "mfcc", "mel")},
}


def cheaper_form(function: str) -> str:
    """Return what to do instead of calling a function of a library, by its full name; "" is not known."""
    return FORMS.get(package_and_name(function), "")

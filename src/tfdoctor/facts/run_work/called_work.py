"""What kind of work a line of the user's has a library do: item by item, or all at once.

Functions are told by their package and their own name, as the recording has them: numpy.append,
pandas.core.frame.DataFrame.iterrows.
"""

from enum import StrEnum

from tfdoctor.facts.phases.run_phases import RunLine

NESTED = 2  # Loops of one function around a line from which on it works on an item at a time, whatever it calls


class CalledWork(StrEnum):
    """The work of a line that does not train."""

    ROWS = "rows of a table, one by one"
    GROWING = "an array or a table that is copied to grow"
    FILES = "files, decoded one by one"
    OPERATIONS = "TensorFlow operations, one by one"
    TEXTS = "texts, one by one"
    PARSING = "a text file, read as Python objects"
    DATASET = "a dataset that is built"
    MODEL = "a model, called from Python"
    DOWNLOAD = "a download"
    PLOT = "a picture that is drawn"
    COLLECTING = "Python's garbage collection"
    PYTHON = "Python, item by item"
    BULK = "one call for all"
    UNKNOWN = "not known"


def called_work(line: RunLine) -> CalledWork:
    """Return the kind of work at a line, by what it calls and whether a loop holds it.

    The user's own Python, Python's modules and packages that are not known work on an item at a time. A call that
    was timed is one, whatever loop makes it: its number is known, and rules judge it by that.
    """
    if line.exact:
        return CalledWork.BULK
    package, name = package_and_name(line.calls)
    known = {"pandas": _of_pandas, "numpy": _of_numpy, **dict.fromkeys(_TENSORFLOW, _of_tensorflow)}.get(package)
    work = known(name, line) if known else _PACKAGES.get(package)
    if work is CalledWork.FILES and not known and name in _WRITES:
        return CalledWork.BULK
    if work is not None:
        return work
    if package in _ALL_AT_ONCE or line.repeats is False:
        return CalledWork.BULK
    return CalledWork.PYTHON if line.repeats else CalledWork.UNKNOWN


def package_and_name(function: str) -> tuple[str, str]:
    """Return the package and the own name of a function: "pandas", "iterrows"; twice "" of none."""
    return function.partition(".")[0], function.rpartition(".")[2]


def _of_pandas(name: str, line: RunLine) -> CalledWork:
    if name in _PANDAS_ROWS:
        return CalledWork.ROWS
    if name in {"append", "_append"} or (name == "concat" and line.repeats):
        return CalledWork.GROWING
    if name.startswith(("read_", "to_", "merge", "sort", "groupby")) or not line.repeats:
        return CalledWork.BULK
    return CalledWork.ROWS


def _of_numpy(name: str, line: RunLine) -> CalledWork | None:
    if name in {"genfromtxt", "loadtxt"}:
        return CalledWork.PARSING
    if (name in {"append", "insert"} and line.repeats is not False) or (name in _NUMPY_JOINS and line.repeats):
        return CalledWork.GROWING
    if name in {"vectorize", "apply_along_axis", "__call__"}:
        return CalledWork.PYTHON
    return CalledWork.BULK if name in _NUMPY_HEAVY and line.loops < NESTED else None


def _of_tensorflow(name: str, line: RunLine) -> CalledWork:
    parts = set(line.calls.split("."))
    if name in _WHOLE_CALLS or name in _WANTED or parts & {"polymorphic_function", "def_function"}:
        return CalledWork.BULK
    if parts & {"data", "dataset_ops", "Dataset", "DatasetV2", "DatasetV1Adapter"}:
        return CalledWork.DATASET
    if name in {"load_img", "img_to_array"} or (name.startswith("decode_") and line.repeats):
        return CalledWork.FILES
    if name in {"texts_to_sequences", "fit_on_texts", "text_to_word_sequence"}:
        return CalledWork.TEXTS
    if name == "__call__" and parts & {"layer", "base_layer", "operation", "Layer", "Model"}:
        return CalledWork.MODEL
    looped = CalledWork.GROWING if name in {"concat", "stack"} else CalledWork.OPERATIONS
    return looped if line.repeats else CalledWork.BULK


_TENSORFLOW = {"tensorflow", "keras", "tf_keras", "tensorflow_datasets", "keras_preprocessing"}

# Functions whose calls the recorder times one by one: rules judge them by these times.
_WHOLE_CALLS = {
    "fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch", "compile", "adapt", "save",
    "save_weights", "save_model", "load_model", "load_weights", "restore", "run",
}  # fmt: skip

# Functions that a loop calls on purpose in each turn, though they take long: tuning-loop asks for this one.
_WANTED = {"clear_session"}

_PANDAS_ROWS = {"iterrows", "itertuples", "apply", "applymap", "items", "iteritems", "map"}

_NUMPY_JOINS = {"concatenate", "vstack", "hstack", "dstack", "column_stack", "row_stack", "stack", "delete"}

# Functions that are loops of compiled code over a whole array.
_NUMPY_HEAVY = {
    "dot", "matmul", "einsum", "tensordot", "inner", "outer", "sort", "argsort", "unique", "histogram", "load",
    "save", "savez", "savez_compressed", "fromfile", "memmap", "svd", "inv", "solve", "eig", "eigh", "fft", "fft2",
    "rfft", "ifft", "rand", "randn", "randint", "random", "normal", "standard_normal", "uniform", "integers",
    "shuffle", "permutation", "choice", "convolve", "cov", "corrcoef", "cumsum", "interp", "percentile", "quantile",
}  # fmt: skip

# Packages whose calls work on all data, wait for others, or run beside this process.
_ALL_AT_ONCE = {
    "sklearn", "scipy", "joblib", "multiprocessing", "concurrent", "threading", "subprocess", "pickle", "gzip",
    "zipfile", "tarfile", "shutil", "time", "pyarrow", "polars", "numba", "jax", "torch", "xgboost", "lightgbm",
    "queue", "selectors", "asyncio", "dask", "ray",
}  # fmt: skip

# Functions that write files: what a run writes, it must write.
_WRITES = {
    "save", "imsave", "imwrite", "mimsave", "mimwrite", "write", "write_wav", "writeframes", "create_dataset",
}  # fmt: skip

# The work that the functions of a package do, whatever they are called.
_PACKAGES = {
    package: work
    for work, packages in {
        CalledWork.COLLECTING: "gc",
        CalledWork.FILES: "PIL cv2 imageio skimage librosa soundfile pydicom audioread wave h5py",
        CalledWork.TEXTS: "nltk spacy gensim transformers tokenizers jieba sentencepiece bs4",
        CalledWork.DOWNLOAD: "urllib urllib3 requests http ssl socket boto3",
        CalledWork.PLOT: "matplotlib seaborn plotly",
    }.items()
    for package in packages.split()
}

# Work on an item at a time that arrays do at once.
ONE_BY_ONE = frozenset({CalledWork.PYTHON, CalledWork.OPERATIONS, CalledWork.ROWS, CalledWork.GROWING})

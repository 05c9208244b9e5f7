"""What is slow about each kind of preparation, and the form that works on all data at once."""

from dataclasses import dataclass

from tfdoctor.facts.run_work.called_work import CalledWork


@dataclass(frozen=True, slots=True)
class PreparationAdvice:
    """What a kind of work does, as a sentence before the place, and what to do instead."""

    fault: str
    action: str
    code: str


COLUMNS = """\
frame["ratio"] = frame["width"] / frame["height"]  # whole columns, no loop over rows
labels = frame["label"].map(classes).to_numpy()  # a dict, not a function
features = frame[columns].to_numpy(np.float32)"""

ONE_JOIN = """\
parts = []
for item in items:
    parts.append(convert(item))  # a list grows without copying what it holds
array = np.concatenate(parts)  # or np.stack, pd.concat: once, after the loop"""

DECODE = """\
dataset = tf.data.Dataset.from_tensor_slices((paths, labels))
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)  # tf.io.read_file, tf.io.decode_image
dataset = dataset.cache().shuffle(1000).batch(batch_size).prefetch(tf.data.AUTOTUNE)"""

ALL_OPERATIONS = """\
results = function(tf.stack(examples))  # one operation for all examples
# or in the input pipeline: dataset.map(function, num_parallel_calls=tf.data.AUTOTUNE)"""

TEXTS = """\
vectorize = keras.layers.TextVectorization(max_tokens=20000, output_sequence_length=200)
vectorize.adapt(tf.data.Dataset.from_tensor_slices(texts).batch(1024))
dataset = dataset.batch(batch_size).map(lambda text, label: (vectorize(text), label), tf.data.AUTOTUNE)"""

READ_TABLE = """\
table = pd.read_csv(path, header=None, dtype=np.float32).to_numpy()
np.save("table.npy", table)  # later runs: np.load("table.npy")"""

KEPT = """\
if not os.path.exists("prepared.npz"):
    np.savez("prepared.npz", x=x, y=y)  # as prepared once
data = np.load("prepared.npz")"""

ARRAYS = """\
x = (images - images.mean(axis=(1, 2), keepdims=True)) / 255.0  # NumPy for all items, no loop over them
# or once for all runs: np.save("x.npy", x), later np.load("x.npy")"""

KEEP_FILE = """\
path = keras.utils.get_file("data.zip", url)  # downloads once, later runs read the file"""

ADVICE = {
    CalledWork.ROWS: PreparationAdvice(
        "Rows of a table are read one by one", "Compute with whole columns of the table", COLUMNS
    ),
    CalledWork.GROWING: PreparationAdvice(
        "An array or a table is copied each time that something is added to it",
        "Collect the parts in a list, and join them once after the loop",
        ONE_JOIN,
    ),
    CalledWork.FILES: PreparationAdvice(
        "Files are read, decoded or converted one by one",
        "Read, decode and convert them in the input pipeline, in parallel and beside the training",
        DECODE,
    ),
    CalledWork.OPERATIONS: PreparationAdvice(
        "TensorFlow operations run one by one for single items",
        "Run each operation once for all items, or in the input pipeline",
        ALL_OPERATIONS,
    ),
    CalledWork.TEXTS: PreparationAdvice(
        "Texts are processed one by one in Python",
        "Tokenize batches of texts, in the input pipeline, or keep the tokens in a file",
        TEXTS,
    ),
    CalledWork.PARSING: PreparationAdvice(
        "A text file is read value by value in Python",
        "Read it with pandas.read_csv, and keep the array in a file",
        READ_TABLE,
    ),
    CalledWork.DOWNLOAD: PreparationAdvice(
        "Data are downloaded in each run", "Keep the downloaded data in a file", KEEP_FILE
    ),
    CalledWork.PYTHON: PreparationAdvice(
        "A loop in Python prepares the data item by item",
        "Compute with whole arrays, or prepare once and keep the result in a file",
        ARRAYS,
    ),
}
"""Of each kind of work that need not take so long; what is not here is necessary, or not known well enough."""

IN_LARGE_BATCHES = PreparationAdvice(
    "",
    "Adapt the layer to large batches, or to the array itself",
    """\
layer.adapt(x)  # the array
layer.adapt(dataset.unbatch().batch(4096))  # one update for 4,096 examples""",
)
"""For adapt on batches of few examples: each batch costs the same few operations."""

CACHED = PreparationAdvice("", "Prepare once, and keep the result in a file", KEPT)
"""What helps whatever the work is: it is the same in each run."""

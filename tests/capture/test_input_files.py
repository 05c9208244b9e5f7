"""What the agent tells of the files of a pipeline: the sizes of images, and the file system, also in a run.

The run has a GPU as well that TensorFlow does not get: what keeps it from that is in test_gpu_access.
"""

from tests.capture.kit import *
from tests.capture.running import *
from tfdoctor.terms.verdict import Finding, Severity

files = agent.load("program.input_files")


def png(height: int, width: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def jpeg(height: int, width: int, frame: int = 0xC0) -> bytes:
    """Return a file with a thumbnail's bytes in a segment before the frame."""
    thumbnail = b"\xff\xd8\xff\xc0" + bytes(100)
    before = struct.pack(">BBH", 0xFF, 0xE1, len(thumbnail) + 2) + thumbnail
    return b"\xff\xd8" + before + struct.pack(">BBHBHH", 0xFF, frame, 17, 8, height, width)


@cases(
    ([png(30, 40)], [30, 40]),
    ([jpeg(30, 40)], [30, 40]),
    ([jpeg(30, 40, 0xC2)], [30, 40]),
    ([png(10, 90), jpeg(30, 40), png(50, 10)], [30, 40]),  # the median of each
    *(
        ([content, png(3, 4)], None)  # other and damaged files
        for content in (b"", b"text", b"\xff\xd8", png(3, 4)[:20], jpeg(3, 4)[:-2], b"\xff\xd8" + bytes(99))
    ),
)
def test_height_and_width_of_images(contents: list[bytes], size: list[int] | None, tmp_path: Path) -> None:
    paths = [tmp_path / str(at) for at in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    assert files.median_image([str(path) for path in paths]) == size


TABLE = r"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /data rw,relatime shared:7 - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /data/local rw - xfs /dev/nvme0n1 rw
32 22 0:42 / /with\040space rw - fuse.gcsfuse bucket rw
33 22 0:43 / /s3 rw - fuse mountpoint-s3 ro
34 22 0:44 / /other rw - fuse /home/me/secret rw
35 22 0:45 / /twice rw - ext4 /dev/vdb rw
36 22 0:46 / /twice rw - lustre 10.0.0.1@tcp:/fs rw
"""


def test_the_innermost_and_latest_mount_holds_a_file(tmp_path: Path) -> None:
    """Without the table none is known; by default it is that of this machine."""
    table = tmp_path / "mountinfo"
    assert files.file_system("/data/a", str(table)) == ""
    table.write_text(TABLE)
    mounted = {"/home/me": "ext4", "/data": "nfs4", "/data/local": "xfs", "/database": "ext4", "/other": "fuse"}
    mounted |= {"/with space": "fuse.gcsfuse", "/s3": "fuse.mountpoint-s3", "/twice": "lustre"}
    assert {path: files.file_system(f"{path}/a.tfrecord", str(table)) for path in mounted} == mounted
    assert files.file_system("/proc/self") == "proc"


TRAIN = """
import sys
import tensorflow as tf
weights = tf.Variable(tf.zeros((250, 1)))
files = [f"{sys.argv[1]}/{number:02}.tfrecord" for number in range(40)]
for file in files:
    with tf.io.TFRecordWriter(file) as writer:
        for _ in range(8):
            writer.write(bytes(250))
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(x, weights) - 1.0) ** 2)
    weights.assign_sub(1e-9 * tape.gradient(loss, weights))
data = tf.data.Dataset.from_tensor_slices(files * 24)
data = data.interleave(tf.data.TFRecordDataset, cycle_length=3, num_parallel_calls=3, block_length=8)
data = data.map(lambda record: tf.cast(tf.io.decode_raw(record, tf.uint8), tf.float32))
for x in data.batch(160, drop_remainder=True).prefetch(2):
    step(x)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run whose files are slow, on a machine with a GPU whose driver does not answer.

    It reads a few files at a time, each of whose reads takes 20 ms: most of the time no core is busy. A batch takes
    20 files, so that each step waits for several rounds of reads, and all steps are alike. TensorFlow asks the
    stand-in for the driver, NVML the one for its library.
    """
    folder = tmp_path_factory.mktemp("run").resolve()
    data, train, table = folder / "data", folder / "train.py", folder / "mountinfo"
    data.mkdir()
    train.write_text(TRAIN)
    table.write_text(f"1 0 0:1 / / rw - ext4 /dev/vda rw\n2 1 0:2 / {data} rw - nfs4 server:/data rw\n")
    compiled("slow_files_stub.c", folder / "slow.so", "-ldl")
    compiled("nvml_stub.c", folder / "lib" / "libnvidia-ml.so.1")
    compiled("cuda_stub.c", folder / "lib" / "libcuda.so.1", "-DERROR=100")
    slow = {"LD_PRELOAD": str(folder / "slow.so"), "SLOW_MS": "20", "SLOW_FOLDER": str(data)}
    env = environment(**slow, MOUNTINFO=str(table), LD_LIBRARY_PATH=str(folder / "lib"))
    del env["CUDA_VISIBLE_DEVICES"]
    run = profiled(train, folder / "out", str(data), env=env, steps=20, warmup=3, sample_every_ms=50)
    assert run.code == 0, run.stderr
    return run


@pytest.mark.tensorflow
def test_reads_that_wait_for_a_server_are_found_in_a_run(run: Run) -> None:
    kinds = {one["files"]["file_system"] for one in run.program["datasets"] if one["files"]}
    assert kinds == {"nfs4"}, json.dumps(run.program["datasets"])
    verdict = judged(run, "slow-storage")
    assert isinstance(verdict, Finding), verdict
    assert "NFS" in verdict.summary
    assert sure(verdict.remedies[0].at).path.endswith("train.py")


@pytest.mark.tensorflow
def test_a_run_beside_a_gpu_that_tensorflow_does_not_get_is_told(run: Run) -> None:
    verdict = judged(run, "missing-gpu")
    assert isinstance(verdict, Finding), verdict
    why = "the driver does not answer (CUDA_ERROR_NO_DEVICE (100))"
    assert verdict.summary == f"The run computes on the CPU beside Stub 0: {why}"
    assert verdict.severity is Severity.WARNING

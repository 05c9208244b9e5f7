"""What the manifest keeps to itself, and what it says."""

from tests.capture.kit import *
from tfdoctor.capture import manifest
from tfdoctor.capture.agent.process.masking import clean, cleaned_begin, masked
from tfdoctor.capture.plan import Plan
from tfdoctor.recording import folders
from tfdoctor.recording.manifest import CapturePlan, Manifest
from tfdoctor.recording.typed import read

HASH = "0123456789abcdef" * 2 + "01234567"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["train.py", "--epochs", "3"], ["train.py", "--epochs", "3"]),
        (["--token", "abc", "x"], ["--token", "***", "x"]),
        (["--api-key=abc"], ["--api-key=***"]),
        (["-p", "secret-looking"], ["-p", "secret-looking"]),
        (["--password", "--other"], ["--password", "--other"]),
        (["--wandb_API_KEY", "abc", "def"], ["--wandb_API_KEY", "***", "def"]),
        (["--credentials=/x=y", "a=b"], ["--credentials=***", "a=b"]),
        (["auth_token=abc"], ["auth_token=***"]),
        (["--db-passwd", "a", "--user-auth", "b"], ["--db-passwd", "***", "--user-auth", "***"]),
        (["keystone.py", "data"], ["keystone.py", "data"]),
        ([], []),
        (["wandb.api_key=abc", "model.lr=3"], ["wandb.api_key=***", "model.lr=3"]),  # Hydra
        (["TOKEN=a b c", "python"], ["TOKEN=***", "python"]),  # `env TOKEN=… python`
        (["--api-key", "-x"], ["--api-key", "-x"]),
        (["-k", "7", "-p", "80"], ["-k", "7", "-p", "80"]),
        (
            ["bash", "-c", "cd x; TOKEN=abc python t.py --api-key abc --lr 1"],
            ["bash", "-c", "cd x; TOKEN=*** python t.py --api-key *** --lr 1"],
        ),
        (["--data=https://h/x?api_key=abc&v=1"], ["--data=https://h/x?api_key=***&v=1"]),
        (["https://abc@github.com/x"], ["https://***@github.com/x"]),
        (["ssh://git@github.com/x"], ["ssh://git@github.com/x"]),
        (['{"api_key": "abc", "lr": 1}'], ['{"api_key": "***", "lr": 1}']),
        (["Authorization: Bearer abc.def"], ["Authorization: Bearer ***"]),
        (["Authorization: Token abc def"], ["Authorization: Token ***"]),
        (["Cookie: a=b; c=d"], ["Cookie: ***"]),
        (["curl", "-u", "me:abc", "h"], ["curl", "-u", "me:***", "h"]),
        (["docker", "-u", "1000:1000", "x"], ["docker", "-u", "1000:1000", "x"]),
        (["sh", "-c", "curl --user me:abc h"], ["sh", "-c", "curl --user me:*** h"]),
        (["Server=h;Uid=u;Pwd=abc;"], ["Server=h;Uid=u;Pwd=***;"]),
        (["--dbpass", "a", "--pw=b"], ["--dbpass", "***", "--pw=***"]),
        (["https://h/x?sv=1&sig=a%2Fb&se=2"], ["https://h/x?sv=1&sig=***&se=2"]),
        (["GITHUB_PAT=a", "AZURE_SAS=b"], ["GITHUB_PAT=***", "AZURE_SAS=***"]),
        (["curl", "-u", "me:a/b", "h"], ["curl", "-u", "me:***", "h"]),
        (["curl", "-ume:abc", "--proxy-user", "me:b"], ["curl", "-ume:***", "--proxy-user", "me:***"]),
        (["--conn=Server=h;Password=a b;X=1"], ["--conn=Server=h;Password=***;X=1"]),
        (["--header=Authorization: Bearer abc def"], ["--header=Authorization: Bearer ***"]),
        (["--pwd", "a", "--signature", "b", "--cookie=c"], ["--pwd", "***", "--signature", "***", "--cookie=***"]),
        (["--hf-tokens", "a", "--author-token=b"], ["--hf-tokens", "***", "--author-token=***"]),
        (["--max-pass", "3", "--pass", "3"], ["--max-pass", "3", "--pass", "***"]),
        (["x=hf_" + "a" * 30], ["x=***"]),
        (["ghp_" + "b" * 36], ["***"]),
        (["-tghp_" + "b" * 36], ["-t***"]),
        (["\\nhf_" + "a" * 34], ["\\n***"]),
        (["a%3Dghs_123_eyJh" + "b" * 40], ["a%3D***"]),
        (["figd_" + "c" * 40, "tskey-auth-kA1-" + "d" * 32], ["***", "***"]),
        (["lsv2_pt_" + "0f" * 16 + "_1234567890"], ["***"]),
        (["123456789:AAE" + "x" * 32], ["***"]),
        (["wandb", "login", HASH], ["wandb", "login", "***"]),
        (["sh", "-c", f"wandb login {HASH}; x"], ["sh", "-c", "wandb login ***; x"]),
        (["X-Api-Key: abc"], ["X-Api-Key: ***"]),
        (["PRIVATE-TOKEN: abc"], ["PRIVATE-TOKEN: ***"]),
        (["{'api_key': 'a b', 'lr': 1}"], ["{'api_key': '***', 'lr': 1}"]),
        (["https://hooks.slack.com/services/T0/B0/abc"], ["https://hooks.slack.com/services/***"]),
        (
            ["t.py", "--db=postgres://u:hunter2@h/x", "redis://:pw@h", "http://h:80/a@b"],
            ["t.py", "--db=postgres://u:***@h/x", "redis://:***@h", "http://h:80/a@b"],
        ),
    ],
)
def test_values_of_credentials_are_masked(arguments: list[str], shown: list[str]) -> None:
    assert masked(arguments) == shown


LETTERS, DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
TOKENS = [  # made up here, so that no file contains one
    *(f"{prefix}_{LETTERS}{DIGITS}" for prefix in ("hf", "npm", "gho", "ghs", "ghu", "ghr", "gsk")),
    *(f"{prefix}_{DIGITS * 4}" for prefix in ("github_pat", "dckr_pat", "sk_live", "rk_test", "dop_v1")),
    *(f"{prefix}-{LETTERS}" for prefix in ("glpat", "nvapi", "xoxb", "xoxp", "sk", "sk-ant", "sk-proj")),
    *("AKIA" + "A1B2" * 4, "ASIA" + "A1B2" * 4, f"AIza{LETTERS}{DIGITS}", f"ya29.a0{LETTERS}"),
    *(f"pypi-AgEI{LETTERS}", f"SG.{LETTERS}.{LETTERS}", f"hvs.{LETTERS}", f"eyJ{LETTERS}.{DIGITS}.a-b_c"),
]


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_of_issuers_are_masked_wherever_they_stand(token: str) -> None:
    assert masked([token]) == ["***"]
    assert masked([f"--x={token}"]) == ["--x=***"]
    assert clean(f"cannot fetch '{token}': 401") == "cannot fetch '***': 401"
    assert cleaned_begin(f"{'x' * 90}: {token}", 95) == f"{'x' * 90}: ***"  # cut after it was masked


KEY = "-----BEGIN {}PRIVATE KEY-----"


@pytest.mark.parametrize("kind", ["", "RSA ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("end", ["", "\n-----END {}PRIVATE KEY-----"])
def test_private_keys_are_masked(kind: str, end: str) -> None:
    head = KEY.format(kind)
    key = f"{head}\nProc-Type: 4,ENCRYPTED\n\nMIIEpA+/=\nMIIEpB{end.format(kind)}"
    assert masked(["train.py", key, "--lr", "1"]) == ["train.py", f"{head}***", "--lr", "1"]
    assert "MII" not in " ".join(masked(["train.py", *key.split()]))  # without quotes
    assert clean(f"not a key: {key}") == f"not a key: {head}***"
    assert clean(key.replace("PRIVATE", "PUBLIC")) == key.replace("PRIVATE", "PUBLIC")


@pytest.mark.parametrize(
    "name",
    [
        *(HASH, f"/data/{HASH}/x.tfrecord", f"--commit={HASH}", f"git checkout {HASH}", HASH + HASH),
        *("/cache/hf_transformers_cache_directory_v2", "sk-learn-training-image-2024", "npm_install.py"),
        *("pypi-mirror-requirements-file.txt", "gs://b/ghp_data", "SG.model.h5", "eyJ.txt", "sk-25"),
        *("models--bert-base-uncased", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "xoxo", "AKIA", "hvs.py"),
        *("x-axis: key", "login", "glossary-of-terms-and-names", "-----BEGIN CERTIFICATE-----MII"),
    ],
)
def test_names_and_hashes_are_shown(name: str) -> None:
    assert masked(["train.py", name, f"--x={name}"]) == ["train.py", name, f"--x={name}"]
    assert clean(f"no such file: {name}") == f"no such file: {name}"


ORDINARY = """
--data_dir=/data --model_dir=gs://bucket/run1 --path x --pattern *.tfrecord --patience 5 --passes 3
--pw_layers=3 --signatures=2 --sigma 0.1 --sigmoid --patch-size=16 --epochs=3 --batch_size 64 --lr 1e-3
--learning_rate=0.1 --optimizer adam --mixed_precision --strategy=mirrored --num_gpus 4 --steps=100
--seed 1 --input_shape 224,224,3 --save-path out/x --log_dir=/tmp/l -u main.py --user bob
--host localhost:8470 --tpu=grpc://10.0.0.2:8470 --cluster worker:0 --sas_rate_decay 1 --sassy=1
--tokenizer bert --max_tokens 512 --tokens_per_batch=4096 --num_tokens=3 --pad_token_id 0 --keypoints 17
--key_dim 64 --keywords=a --author bob --bypass 1 --single_pass=1 --low_pass 3 --signature-columns a
--signature_def serving_default --signature_key=serving_default -u localhost:8080 -u worker0:6009,worker1:6009 -u http://h:80/a
"""


def test_what_ordinary_scripts_are_given_is_shown() -> None:
    assert masked(ORDINARY.split()) == ORDINARY.split()


@pytest.mark.parametrize("long", ["x" * 500_000, "a_key-" * 50_000, '"' * 9_000, "-u" * 9_000, "'a" * 9_000])
def test_a_long_argument_is_read_once(long: str) -> None:
    assert masked([long, f"{long}; TOKEN=abc"])[1].endswith("; TOKEN=***")


def test_the_environment_is_recorded_by_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": "0",
        "OMP_NUM_THREADS": "4",
        "AWS_SECRET_ACCESS_KEY": "no",
        "TF_API_KEY": "no",
        "TF_CONFIG": "no",
        "HOME_ADDRESS": "no",
    }.items():
        monkeypatch.setenv(name, value)
    found = manifest.begin(Plan("train.py"), ["python", "train.py"]).environment
    assert found["TF_CPP_MIN_LOG_LEVEL"] == "2"
    assert found["CUDA_VISIBLE_DEVICES"] == "0"
    assert found["OMP_NUM_THREADS"] == "4"
    assert "no" not in found.values()


@pytest.mark.parametrize(("returned", "code"), [(0, 0), (3, 3), (-2, 130), (-9, 137), (255, 255)])
def test_exit_codes_are_those_of_a_shell(returned: int, code: int) -> None:
    assert manifest.exit_code(returned) == code


def test_a_manifest_is_readable_before_the_run_is_over(tmp_path: Path) -> None:
    begun = manifest.begin(Plan("train.py", ("--lr", "1")), ["python3", "train.py"])
    manifest.write(tmp_path, begun)
    written = read(Manifest, json.loads((tmp_path / "tfdoctor.json").read_text()), [])
    assert written == begun
    assert not written.finished
    assert written.host.memory_bytes > 0
    assert written.plan == CapturePlan(
        kind="script", script="train.py", steps=20, warmup=10, sample_every_ms=200, watch_s=60.0
    )
    assert [path.name for path in tmp_path.iterdir()] == ["tfdoctor.json"]


TF = {"versions": {"tensorflow": "2"}}
WANTED = {"wanted": "tensorflow"}
LOOP = {"source": "session-run", "steps": 5, "calls": 5, "at": ["train.py", 34]}


def steps(seen: int, **more: Any) -> dict[str, Any]:
    return {"steps": {"seen": seen, **more}, **TF}


def loops(number: int) -> dict[str, Any]:
    return steps(5, source="session-run", at=["train.py", 34], candidates=[LOOP] * number)


END = {"finished": True}
UNSEEN = "whose training steps tfdoctor does not record"


@pytest.mark.parametrize(
    ("returned", "agent", "said"),
    [
        (0, steps(7) | END, "--warmup 3"),
        (0, steps(1) | END, "train longer"),
        (0, steps(7), "after at least 7 steps, before tracing started: let it finish, or trace fewer steps"),
        (0, loops(1) | END, "the run ended after 5 steps, during warm-up (10): use --warmup 2"),
        # A run of many short loops did not end after the first.
        (0, loops(27) | END, "no loop trained for more than 5 steps, and the warm-up has 10: use --warmup 2"),
        (0, steps(0), "no training step was seen"),
        (0, {"steps": {"seen": 0}, "versions": {}}, "did not import TensorFlow"),
        (
            *(0, {"wanted": "keras", "backend": "jax", "versions": {"jax": "0.10"}}),
            f"Keras runs on JAX, {UNSEEN}: trace some of them with",
        ),
        (0, {"backend": "torch", **TF, **END}, f"Keras runs on PyTorch, {UNSEEN}"),
        (0, {"wanted": "keras", "backend": "numpy", **END}, f"Keras runs on numpy, {UNSEEN}"),
        (0, {"versions": {"torch": "2.9"}}, f"this is no TensorFlow program but one of PyTorch, {UNSEEN}"),
        (0, WANTED | END | {"versions": {"jax": "0.10"}}, "the script did not import TensorFlow"),
        (0, WANTED | END, "the script did not import TensorFlow"),
        (0, WANTED, "abruptly (killed, or by os._exit or os.execv) before"),
        (0, {"window": {"steps": 0}, **TF}, "abruptly"),
        (0, [], "is damaged"),
        (0, None, "is damaged"),
        # A run that failed is to be mended first.
        (1, WANTED | END, "the script ended with exit code 1: importing TensorFlow failed"),
        (3, WANTED, "exit code 3 before tracing started: fix that first"),
        (-15, WANTED, "before tracing started: let it finish, or trace fewer steps and earlier with --warmup 1"),
        (-36, WANTED, "the script was ended by signal 36 before tracing"),
        (
            *(-15, {"window": {"steps": 0}, **TF}),
            (
                "ended by SIGTERM during tracing, so there is no trace: let it finish, "
                "trace fewer steps with --steps, or end it with --stop-after"
            ),
        ),
        (1, {}, "the script ended with exit code 1 before it imported TensorFlow: fix that first"),
        (2, TF, "exit code 2 before a training step: fix that"),
        (-11, TF, "ended by SIGSEGV before a training step"),
        (1, steps(1) | END, "exit code 1 after 1 step, during warm-up (10): fix that first"),
    ],
)
def test_what_is_missing_says_what_to_do(tmp_path: Path, returned: int, agent: object, said: str) -> None:
    assert said in gaps(tmp_path, Plan("train.py"), returned, agent)


def gaps(out: Path, plan: Plan, returned: int, agent: object) -> str:
    """Return what a recording lacks of a run that has returned, and of whose agent this is left."""
    folder = out / "processes" / "vm.7"
    folder.mkdir(parents=True)
    (folder / "agent.json").write_text("{" if agent is None else json.dumps(agent))
    (process,) = folders.processes(out)
    ended = manifest.end(manifest.begin(plan, ["python3", plan.script]), returned, (), [process])
    return "\n".join(entry.why for entry in manifest.of_process(ended, process).missing)


def test_a_run_without_warm_up_is_only_to_finish(tmp_path: Path) -> None:
    assert gaps(tmp_path, Plan("train.py", warmup=1), -15, WANTED).endswith("before tracing started: let it finish")


def test_a_long_run_without_a_step_is_told_what_to_do(tmp_path: Path) -> None:
    said = gaps(tmp_path, Plan("train.py", watch_s=0.0), 0, TF)
    assert re.search(r"no training step was seen in 0 s .*: if it trains, trace by time with --for 2s", said)


def test_a_file_that_hides_tensorflow_is_named(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").touch()
    assert gaps(tmp_path, Plan(str(tmp_path / "train.py")), 1, WANTED | END) == (
        "the script ended with exit code 1: tensorflow.py in the folder of the script hides TensorFlow: rename it"
    )

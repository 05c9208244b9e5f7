"""What the manifest keeps to itself, and what it says."""

from tests.capture.kit import *
from tests.facts.kit import Told
from tfdoctor.capture import manifest
from tfdoctor.capture.agent.process.masking import clean, cleaned_begin, masked
from tfdoctor.capture.plan import Plan
from tfdoctor.recording import folders
from tfdoctor.recording.manifest import CapturePlan, Manifest
from tfdoctor.recording.typed import read

HASH = "0123456789abcdef" * 2 + "01234567"


MASKED = [  # arguments with two blanks between them, and between « and » what is secret
    *(
        "",
        "train.py  --epochs  3",
        "--token  «abc»  x",
        "--api-key=«abc»",
        "-p  secret-looking",
        "auth_token=«abc»",
    ),
    *("--password  --other", "--wandb_API_KEY  «abc»  def", "--credentials=«/x=y»  a=b", "keystone.py  data"),
    *("--db-passwd  «a»  --user-auth  «b»", "--api-key  -x", "-k  7  -p  80", "--dbpass  «a»  --pw=«b»"),
    "wandb.api_key=«abc»  model.lr=3",  # Hydra
    "TOKEN=«a b c»  python",  # `env TOKEN=… python`
    "bash  -c  cd x; TOKEN=«abc» python t.py --api-key «abc» --lr 1",
    *("--data=https://h/x?api_key=«abc»&v=1", "https://«abc»@github.com/x", "ssh://git@github.com/x"),
    *('{"api_key": "«abc»", "lr": 1}', "{'api_key': '«a b»', 'lr': 1}", "https://h/x?sv=1&sig=«a%2Fb»&se=2"),
    *("Authorization: Bearer «abc.def»", "Authorization: Token «abc def»", "Cookie: «a=b; c=d»"),
    *(
        "curl  -u  me:«abc»  h",
        "docker  -u  1000:1000  x",
        "sh  -c  curl --user me:«abc» h",
        "curl  -u  me:«a/b»  h",
    ),
    *("curl  -ume:«abc»  --proxy-user  me:«b»", "Server=h;Uid=u;Pwd=«abc»;", "GITHUB_PAT=«a»  AZURE_SAS=«b»"),
    *("--conn=Server=h;Password=«a b»;X=1", "--header=Authorization: Bearer «abc def»", "X-Api-Key: «abc»"),
    *("--pwd  «a»  --signature  «b»  --cookie=«c»", "--hf-tokens  «a»  --author-token=«b»", "PRIVATE-TOKEN: «abc»"),
    *("--max-pass  3  --pass  «3»", f"x=«hf_{30 * 'a'}»", f"«ghp_{36 * 'b'}»", f"-t«ghp_{36 * 'b'}»"),
    *(f"\\n«hf_{34 * 'a'}»", f"a%3D«ghs_123_eyJh{40 * 'b'}»", f"«figd_{40 * 'c'}»  «tskey-auth-kA1-{32 * 'd'}»"),
    *(f"«lsv2_pt_{16 * '0f'}_1234567890»", f"«123456789:AAE{32 * 'x'}»"),
    *(
        f"wandb  login  «{HASH}»",
        f"sh  -c  wandb login «{HASH}»; x",
        "https://hooks.slack.com/services/«T0/B0/abc»",
    ),
    "t.py  --db=postgres://u:«hunter2»@h/x  redis://:«pw»@h  http://h:80/a@b",
]


@each(*MASKED)
def test_values_of_credentials_are_masked(row: str) -> None:
    assert masked(re.sub("[«»]", "", row).split("  ")) == re.sub("«.*?»", "***", row).split("  ")


LETTERS, DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
TOKENS = [  # made up here, so that no file contains one
    *(f"{prefix}_{LETTERS}{DIGITS}" for prefix in ("hf", "npm", "gho", "ghs", "ghu", "ghr", "gsk")),
    *(f"{prefix}_{DIGITS * 4}" for prefix in ("github_pat", "dckr_pat", "sk_live", "rk_test", "dop_v1")),
    *(f"{prefix}-{LETTERS}" for prefix in ("glpat", "nvapi", "xoxb", "xoxp", "sk", "sk-ant", "sk-proj")),
    *("AKIA" + "A1B2" * 4, "ASIA" + "A1B2" * 4, f"AIza{LETTERS}{DIGITS}", f"ya29.a0{LETTERS}"),
    *(f"pypi-AgEI{LETTERS}", f"SG.{LETTERS}.{LETTERS}", f"hvs.{LETTERS}", f"eyJ{LETTERS}.{DIGITS}.a-b_c"),
]


@each(*TOKENS)
def test_tokens_of_issuers_are_masked_wherever_they_stand(token: str) -> None:
    assert masked([token, f"--x={token}"]) == ["***", "--x=***"]
    assert clean(f"cannot fetch '{token}': 401") == "cannot fetch '***': 401"
    assert cleaned_begin(f"{'x' * 90}: {token}", 95) == f"{'x' * 90}: ***"  # cut after it was masked


@each("", "RSA ", "OPENSSH ", "ENCRYPTED ")
@pytest.mark.parametrize("end", ["", "\n-----END {}PRIVATE KEY-----"])
def test_private_keys_are_masked(kind: str, end: str) -> None:
    head = f"-----BEGIN {kind}PRIVATE KEY-----"
    key = f"{head}\nProc-Type: 4,ENCRYPTED\n\nMIIEpA+/=\nMIIEpB{end.format(kind)}"
    assert masked(["train.py", key, "--lr", "1"]) == ["train.py", f"{head}***", "--lr", "1"]
    assert "MII" not in " ".join(masked(["train.py", *key.split()]))  # without quotes
    assert clean(f"not a key: {key}") == f"not a key: {head}***"
    assert clean(key.replace("PRIVATE", "PUBLIC")) == key.replace("PRIVATE", "PUBLIC")


@each(
    *(HASH, f"/data/{HASH}/x.tfrecord", f"--commit={HASH}", f"git checkout {HASH}", HASH + HASH),
    *("/cache/hf_transformers_cache_directory_v2", "sk-learn-training-image-2024", "npm_install.py"),
    *("pypi-mirror-requirements-file.txt", "gs://b/ghp_data", "SG.model.h5", "eyJ.txt", "sk-25"),
    *("models--bert-base-uncased", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "xoxo", "AKIA", "hvs.py"),
    *("x-axis: key", "login", "glossary-of-terms-and-names", "-----BEGIN CERTIFICATE-----MII"),
)
def test_names_and_hashes_and_what_ordinary_scripts_are_given_are_shown(name: str) -> None:
    assert masked(["train.py", name, f"--x={name}"]) == ["train.py", name, f"--x={name}"]
    assert (masked(ORDINARY.split()), masked([])) == (ORDINARY.split(), [])
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


@each("x" * 100_000, "a_key-" * 10_000, '"' * 9_000, "-u" * 9_000, "'a" * 9_000)
def test_a_long_argument_is_read_once(long: str) -> None:
    assert masked([long, f"{long}; TOKEN=abc"])[1].endswith("; TOKEN=***")


def test_the_environment_is_recorded_by_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "4"}
    hidden = dict.fromkeys(("AWS_SECRET_ACCESS_KEY", "TF_API_KEY", "TF_CONFIG", "HOME_ADDRESS"), "no")
    for name, value in (shown | hidden).items():
        monkeypatch.setenv(name, value)
    found = manifest.begin(Plan("train.py"), ["python", "train.py"]).environment
    assert {**found, **shown} == found
    assert "no" not in found.values()


@cases((0, 0), (3, 3), (-2, 130), (-9, 137), (255, 255))
def test_exit_codes_are_those_of_a_shell(returned: int, code: int) -> None:
    assert manifest.exit_code(returned) == code


def test_a_manifest_is_readable_before_the_run_is_over(tmp_path: Path) -> None:
    begun = manifest.begin(Plan("train.py", ("--lr", "1")), ["python3", "train.py"])
    manifest.write(tmp_path, begun)
    written = read(Manifest, json.loads((tmp_path / "tfdoctor.json").read_text()), [])
    plan = CapturePlan(kind="script", script="train.py", steps=20, warmup=10, sample_every_ms=200)
    assert (written, written.plan, written.finished) == (begun, plan, False)
    assert written.host.memory_bytes > 0
    assert [path.name for path in tmp_path.iterdir()] == ["tfdoctor.json"]


TF = {"versions": {"tensorflow": "2"}}
WANTED = {"wanted": "tensorflow"}
LOOP = {"source": "session-run", "steps": 5, "calls": 5, "at": ["train.py", 34]}


def steps(seen: int, loops: int = 0) -> dict[str, Any]:
    return {"steps": {"seen": seen, **LOOP, "candidates": [LOOP] * loops} if loops else {"seen": seen}, **TF}


END = {"finished": True}
KERAS = {"wanted": "keras", "versions": {}}
MISSING: dict[str, tuple[int, Any] | tuple[int, Any, dict[str, Any]]] = {
    "ended after 7 steps": (0, steps(7) | END),
    "ended after a step": (0, steps(1) | END),
    "7 steps, and no end": (0, steps(7)),
    "one loop of 5 steps": (0, steps(5, loops=1) | END),
    "many short loops, of which the run did not end after the first": (0, steps(5, loops=27) | END),
    "no step": (0, steps(0)),
    "no TensorFlow": (0, {"steps": {"seen": 0}, "versions": {}}),
    "Keras on JAX": (0, KERAS | {"backend": "jax", "versions": {"jax": "0.10"}}),
    "Keras on PyTorch": (0, {"backend": "torch", **TF, **END}),
    "Keras on NumPy": (0, KERAS | {"backend": "numpy", **END}),
    "PyTorch alone": (0, {"versions": {"torch": "2.9"}}),
    "JAX where TensorFlow was wanted": (0, WANTED | END | {"versions": {"jax": "0.10"}}),
    "nothing where TensorFlow was wanted": (0, WANTED | END),
    "no end before TensorFlow came": (0, WANTED),
    "no end during the window": (0, {"window": {"steps": 0}, **TF}),
    "another state": (0, []),
    "a damaged state": (0, None),
    # A run that failed is to be mended first.
    "failed at an import": (1, WANTED | END),
    "interrupted at an import": (-2, WANTED | END),
    "failed before tracing": (3, WANTED),
    "failed before TensorFlow": (1, {}),
    "failed before a step": (2, TF),
    "failed after a step": (1, steps(1) | END),
    "ended by a signal before tracing": (-15, WANTED),
    "ended by a signal before tracing without warm-up": (-15, WANTED, {"warmup": 1}),
    "ended by a signal without a name": (-36, WANTED),
    "ended by a signal during tracing": (-15, {"window": {"steps": 0}, **TF}),
    "ended by a fault before a step": (-11, TF),
}


def test_what_is_missing_says_what_to_do(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    told = Told()
    for number, (name, (returned, left, *plan)) in enumerate(MISSING.items()):
        options = plan[0] if plan else {}
        told.add(name, partial(gaps, tmp_path / str(number), Plan("train.py", **options), returned, left))
    (tmp_path / "tensorflow.py").touch()
    hidden = Plan(str(tmp_path / "train.py"))
    told.add("a file that hides TensorFlow", partial(gaps, tmp_path / "hidden", hidden, 1, WANTED | END))
    golden("manifest.txt", "\n".join(told.lines()))


def gaps(out: Path, plan: Plan, returned: int, left: object) -> str:
    """Return what a recording lacks of a run that has returned, and of whose agent this is left."""
    folder = out / "processes" / "vm.7"
    folder.mkdir(parents=True)
    (folder / "agent.json").write_text("{" if left is None else json.dumps(left))
    (process,) = folders.processes(out)
    ended = manifest.end(manifest.begin(plan, ["python3", plan.script]), returned, (), [process])
    return "\n".join(entry.why for entry in manifest.of_process(ended, process).missing)

"""Pretrained models in the format of the library transformers: named, found, loaded, and applied to images or texts."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from hashbench._typing import Float32Array, Progress, silent
from hashbench.errors import HashbenchError, how_to_install, one_line
from hashbench.sources._torch import find_device, import_library, import_torch
from hashbench.store.inputs import reading

if TYPE_CHECKING:
    from torch import Tensor

PREFIX = "hf:"
POOLINGS = {"cls": "CLS", "mean": "mean", "projection": "projection"}  # as users type them and as rows show them
_HOW_TO_INSTALL = (
    "features hf:MODEL need the library transformers, which is not installed: " + how_to_install("transformers") + "."
)
_FILES = re.compile(r"(1_Pooling/)?[^/]+\.(json|txt|model)|[^/]+\.safetensors")  # of a model that are read
_DOWNLOADED = {"allow_patterns": ["*.json", "*.txt", "*.model", "*.safetensors"], "ignore_patterns": ["[!1]*/*"]}
_POOLING_FILE = "1_Pooling/config.json"  # of sentence-transformers
_MODULES = {("Transformer", ""), ("Pooling", "1_Pooling")}  # of sentence-transformers that are applied, and Normalize
_USUAL_LENGTH = 512  # tokens of a text, if neither tokenizer nor model has a limit
_NO_LIMIT = 1_000_000  # tokens; a tokenizer without a limit has 10^30
_DIGEST = 8  # hex digits of a folder's digest in names
_ROUNDING = 1e-2  # of a vector's norm, which float16 may take
_LOCAL = {"local_files_only": True, "trust_remote_code": False}


class ModelName(NamedTuple):
    """The parts of a kind of features ``hf:MODEL[@REVISION][:POOLING]``; ``folder`` is set if MODEL is a folder."""

    model: str
    revision: str | None
    pooling: str | None
    folder: Path | None

    @property
    def short(self) -> str:
        """The kind under which datasets and rows record the features; a folder is its last name and a digest."""
        model, revision = self.model, self.revision
        if self.folder is not None:
            model = re.sub(r"[^\w.]+", "-", self.folder.resolve().name).strip("-.") or "model"
            revision = digest_of(self.folder)[:_DIGEST]
        revision = f"@{revision}" if revision else ""
        return f"{PREFIX}{model}{revision}{f':{self.pooling}' if self.pooling else ''}"

    @property
    def stem(self) -> str:
        """The kind as part of a file name; no two kinds share one, since the hub allows neither -- nor + in names."""
        kind = self.short.removeprefix(PREFIX).replace(":", "+").replace("/", "--")
        return f"hf-{kind}"


def is_model(kind: str) -> bool:
    """Return whether a kind of features names a model of transformers."""
    return kind.startswith(PREFIX)


def parse(kind: str) -> ModelName:
    """Read ``hf:MODEL[@REVISION][:POOLING]``; an existing folder comes before a model of the hub."""
    text, pooling = kind.removeprefix(PREFIX), None
    folder = _folder(text)
    if folder is None and (parts := re.fullmatch(r"(.*):([^/\\:]*)", text)):
        text, pooling = parts.groups()
        if pooling not in POOLINGS:
            raise HashbenchError(f"{kind} has pooling {pooling!r}, expected one of {', '.join(POOLINGS)}.")
        folder = _folder(text)
    if folder is not None:
        return ModelName(text, None, pooling, folder)
    model, _, revision = text.partition("@")
    if not re.fullmatch(r"(\w[\w.-]*/)?\w[\w.-]*", model) or "--" in model:
        raise HashbenchError(
            f"{kind} is neither a folder that exists nor the name of a model; name a folder, or a model of the hub as "
            "hf:OWNER/MODEL or hf:OWNER/MODEL@REVISION."
        )
    return ModelName(model, revision or None, pooling, None)


def _folder(text: str) -> Path | None:
    try:
        path = Path(text).expanduser()
        return path if text and path.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # such as a name that is too long, or of an unknown user
        return None


class Model:
    """A pretrained model in evaluation mode, which computes one vector per image or text.

    It is in ``folder`` or where ``kind``, ``hf:MODEL[@REVISION][:POOLING]``, says, ``reads`` images or texts, and runs
    in float32 on a CPU and in float16 on a GPU, or ``in_float64``. ``n_features`` is the length of the vectors,
    ``pooling`` the key of ``POOLINGS`` by which they come about, and ``provenance`` names the model with its commit or
    the digest of its files, pooling, dtype and version of transformers; ``recipe`` has all but the last two. Raises
    HashbenchError if transformers or the model is missing, if its weights are not safetensors or do not fit, or if it
    does not compute one vector per item.
    """

    def __init__(
        self,
        kind: str,
        reads: str,
        *,
        folder: Path | None = None,
        device: str = "auto",
        in_float64: bool = False,
        on_progress: Progress = silent,
    ) -> None:
        self.torch, self.transformers = import_torch(), import_library("transformers", _HOW_TO_INSTALL)
        self.kind, self.reads, self.device = kind, reads, find_device(device).type
        self.dtype = self.torch.float32 if self.device == "cpu" else self.torch.float16
        if in_float64:
            self.dtype = self.torch.float64
        self._wide = self.torch.promote_types(self.dtype, self.torch.float32)  # of vectors
        self._lock = Lock()  # a tokenizer works for one thread at a time
        self._padding = "longest"
        name = parse(kind)
        folder = folder or name.folder
        self.folder = download(name.model, name.revision, on_progress) if folder is None else folder
        content = self.folder.name if folder is None else digest_of(folder)
        if folder is not None and name.folder is None and name.revision and not content.startswith(name.revision):
            raise HashbenchError(
                f"the files in {folder} are not those of {kind}, but have the digest {content}. Pass the folder as "
                f"--features hf:{folder}."
            )
        model = re.split("[@:]", name.short.removeprefix(PREFIX))[0]
        settings = _of_sentence_transformers(kind, self.folder) if reads == "texts" else SentenceSettings()
        self._is_normalised, self._is_lowered = settings.is_normalised, settings.is_lowered
        self._projects = f"get_{reads.removesuffix('s')}_features"  # method of models of images and texts
        with _quiet(self.transformers.utils.logging):
            self.model, self.config = self._load()
            self.prepare = self._image_processor() if reads == "images" else self._tokenizer(settings.max_length)
        self._weight_names = {name.rpartition(".")[2] for name, _ in self.model.named_parameters()}
        self._has_cls = self._finds_cls()
        self.pooling = self._choose_pooling(name.pooling, settings.pooling)
        self.n_features = self._try_out()
        dtype = str(self.dtype).removeprefix("torch.")
        pooling = f"{POOLINGS[self.pooling]}{', normalised' if self._is_normalised else ''}"
        origin = f"{model}, {'commit' if folder is None else 'files'} {content}"
        self.provenance = f"{origin}, {pooling}, {dtype}, transformers {self.transformers.__version__}"
        self.recipe = {"model": model, "content": content, "pooling": self.pooling, "normalised": self._is_normalised}

    def of_batch(self, items: Sequence[Any]) -> "Tensor":
        """Compute the vectors (n, n_features), float32 or 64, of images (height, width, 3), uint8, or of texts."""
        is_image = self.reads == "images"
        shown = f"images of shapes {sorted({item.shape for item in items})[:3]}" if is_image else f"{items[0][:40]!r}"
        advice = "Give images of one size" if is_image else "Check that the tokenizer is the model's own"
        what = f"{self.kind} ({type(self.model).__name__}) cannot be applied to {shown}"
        with _failing(what, f"{advice}, or choose another model"):
            vectors: Tensor = self._pooled(self._inputs(items)).to(self._wide)
        if self._is_normalised:
            vectors = self.torch.nn.functional.normalize(vectors)
        if not vectors.isfinite().all():
            advice = "Choose --device cpu" if self.device == "cuda" else "Choose another model"
            raise HashbenchError(f"{self.kind} computes values that are not finite in {self.dtype}. {advice}.")
        return vectors

    def __call__(self, items: Iterable[Any]) -> Float32Array:
        """Compute the vectors of a few items; `hashbench.sources.features.weights.over_batches` computes many."""
        with self.torch.inference_mode():
            vectors: Float32Array = self.of_batch(list(items)).cpu().numpy()
        return vectors

    # ---------------------------------------------------------------- loading

    def _load(self) -> tuple[Any, Any]:
        """Load the model and its configuration; refuse one of other items, or with fewer or more weights."""
        advice = "It has to be a model of transformers, with weights in .safetensors files and without code of its own"
        with _failing(f"cannot load {self.kind} from {self.folder}", advice):
            config = self.transformers.AutoConfig.from_pretrained(self.folder, **_LOCAL)
            architecture = next(iter(getattr(config, "architectures", None) or ()), "")
            loader = self.transformers.AutoModel  # drops a projection, and expects a decoder beside an encoder
            if architecture.endswith(("WithProjection", "EncoderModel")):
                loader = getattr(self.transformers, architecture)
            model, info = loader.from_pretrained(
                self.folder,
                **_LOCAL,
                config=config,
                attn_implementation=None,  # that of transformers, not kernels of the hub, which the files may name
                use_safetensors=True,
                dtype=self.dtype,
                output_loading_info=True,
            )
        used = {re.sub(r"\d+", "0", key) for key in model.state_dict()}
        missing = {key for key in info["missing_keys"] if ".pooler." not in f".{key}"}  # which is not used
        left_out = {key for key in info["unexpected_keys"] if re.sub(r"\d+", "0", key) in used}  # of further layers
        if missing or left_out:
            raise HashbenchError(
                f"the weights in {self.folder} do not fit its config.json: {len(missing)} are missing and "
                f"{len(left_out)} left out, such as {min(missing | left_out)}. Save the model with "
                "model.save_pretrained(FOLDER), and pass hf:FOLDER."
            )
        expected = "pixel_values" if self.reads == "images" else "input_ids"
        if not hasattr(model, self._projects) and model.main_input_name != expected:
            raise HashbenchError(
                f"{self.kind} ({type(model).__name__}) does not read {self.reads}, but {model.main_input_name}. Choose "
                f"a model of {self.reads}."
            )
        return model.eval().to(self.device), config

    def _image_processor(self) -> Any:
        """Load the model's image processor, the one of Pillow, which gives the same bytes on all machines."""
        advice = "Add its preprocessor_config.json by processor.save_pretrained(FOLDER)"
        with _failing(f"{self.kind} has no image processor that can be loaded", advice):
            return self.transformers.AutoImageProcessor.from_pretrained(self.folder, **_LOCAL, backend="pil")

    def _tokenizer(self, recorded: int | None) -> Any:
        """Load the model's tokenizer, and limit texts to the length recorded and to the model's positions."""
        advice = "Add its tokenizer.json and tokenizer_config.json by tokenizer.save_pretrained(FOLDER)"
        with _failing(f"{self.kind} has no tokenizer that can be loaded", advice):
            tokenizer = self.transformers.AutoTokenizer.from_pretrained(self.folder, **_LOCAL)
        config = getattr(self.config, "text_config", self.config)
        n_tokens, n_known = len(tokenizer), getattr(config, "vocab_size", 0)
        if 2 * n_tokens < n_known:  # without its files, transformers makes up one that knows no word
            raise HashbenchError(
                f"{self.kind} has a tokenizer of {n_tokens} tokens for a model of {n_known}: it lacks files. {advice}."
            )
        limits = (recorded or tokenizer.model_max_length, getattr(config, "max_position_embeddings", None) or 0)
        tokenizer.model_max_length = min((n for n in limits if 0 < n < _NO_LIMIT), default=_USUAL_LENGTH)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token  # its positions are masked
        return tokenizer

    # ---------------------------------------------------------------- pooling

    def _finds_cls(self) -> bool:
        """Return whether a CLS token comes first."""
        if self.reads == "images":
            return not self._weight_names.isdisjoint(("cls_token", "class_embedding", "class_token"))
        return self.prepare.cls_token_id in self.prepare("text")["input_ids"][:1]

    def _choose_pooling(self, chosen: str | None, recorded: str | None) -> str:
        """Return the pooling: the projection if there is one, else what is chosen or recorded, CLS or mean."""
        possible = [*(["cls"] if self._has_cls else []), "mean"]
        usual = recorded or "mean" if self.reads == "texts" else possible[0]
        if hasattr(self.model, self._projects) or type(self.model).__name__.endswith("WithProjection"):
            possible, usual = ["projection"], "projection"
        pooling = chosen or usual
        if pooling not in possible:
            raise HashbenchError(
                f"{self.kind} ({type(self.model).__name__}) has no pooling {pooling!r}, only {' and '.join(possible)}. "
                f"Write it after the name: hf:MODEL:{possible[-1]}."
            )
        return pooling

    def _inputs(self, items: Sequence[Any]) -> dict[str, "Tensor"]:
        """Prepare a batch as the model was trained on, by its processor or tokenizer."""
        if self.reads == "images":
            from PIL import Image

            inputs = self.prepare(images=[Image.fromarray(item) for item in items], return_tensors="pt")
        else:
            texts = [text.lower() if self._is_lowered else text for text in items]
            with self._lock:
                inputs = self.prepare(texts, padding=self._padding, truncation=True, return_tensors="pt")
        return {
            key: tensor.to(self.device, self.dtype if tensor.is_floating_point() else None)
            for key, tensor in inputs.items()
        }

    def _pooled(self, inputs: dict[str, "Tensor"]) -> Any:
        if self.pooling == "projection":
            projects = getattr(self.model, self._projects, None)
            outputs = self.model(**inputs) if projects is None else projects(**inputs)
            return outputs.pooler_output if projects else outputs[f"{self.reads.removesuffix('s')}_embeds"]
        outputs = self.model(**inputs)
        hidden = outputs.last_hidden_state
        if self.pooling == "cls":
            return hidden[:, 0]
        if hidden.ndim == 4:  # (n, n_features, height, width) of convolutions; some normalise the mean
            pooled = getattr(outputs, "pooler_output", None)
            return hidden.mean(dim=(2, 3)) if pooled is None else pooled.flatten(1)
        hidden = hidden.to(self._wide)
        if self.reads == "images":  # without CLS, a distillation token and registers
            n_registers = getattr(self.config, "num_register_tokens", 0) or 0
            return hidden[:, self._has_cls + ("distillation_token" in self._weight_names) + n_registers :].mean(dim=1)
        mask = inputs["attention_mask"][..., None].to(self._wide)  # (n, n_tokens, 1)
        return (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)

    def _try_out(self) -> int:
        """Compute the vector of one item twice; refuse a model that fails, draws at random or gives no vector."""
        import numpy as np

        item = np.full((64, 64, 3), 128, np.uint8) if self.reads == "images" else "a text"
        first, second = (self([item]) for _ in range(2))
        if first.ndim != 2 or not np.array_equal(first, second):
            raise HashbenchError(
                f"{self.kind} does not compute a vector per item, the same each time, but an array of shape "
                f"{first.shape}. Choose another model."
            )
        if self.reads == "texts":
            change = np.linalg.norm(first - self([item, f"{item} " * 4])[:1])
            if change > _ROUNDING * np.linalg.norm(first):
                self._padding = "max_length"  # as SigLIP, which reads the padding too
        return int(first.shape[1])


@contextmanager
def _failing(what: str, advice: str) -> Iterator[None]:
    """Turn errors of the libraries, which can be of any kind, into a sentence."""
    try:
        yield
    except Exception as error:
        reason = one_line(error).partition(". ")[0].rstrip(".")[:200]
        raise HashbenchError(f"{what}: {type(error).__name__}: {reason}. {advice}.") from error


@contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """Keep transformers from printing advice and bars while it loads."""
    verbosity, shows_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shows_bars:
            logging.enable_progress_bar()


# ---------------------------------------------------------------- files


class SentenceSettings(NamedTuple):
    """What sentence-transformers records beside a model of texts."""

    pooling: str | None = None
    is_normalised: bool = False
    max_length: int | None = None
    is_lowered: bool = False


def _of_sentence_transformers(kind: str, folder: Path) -> SentenceSettings:
    """Read the settings of sentence-transformers, if there are any; refuse modules that hashbench does not apply."""

    def content(path: Path) -> Any:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    with reading(folder, "settings of sentence-transformers"):
        modules = [(module["type"].rpartition(".")[2], module["path"]) for module in content(folder / "modules.json")]
        pooling = content(folder / _POOLING_FILE)
        modes = [key for key, is_on in pooling.items() if key.startswith("pooling_mode_") and is_on is True]
        modes = [re.sub(r"pooling_mode_|_tokens?$", "", mode) for mode in modes] or [pooling.get("pooling_mode")]
        texts = [content(path) for path in sorted(folder.glob("sentence_*_config.json"))]  # of BERT, RoBERTa and others
        max_length, is_lowered = (texts[0].get(key) if texts else None for key in ("max_seq_length", "do_lower_case"))
        if max_length is not None:
            max_length = int(max_length)
    for name, where in modules:
        if name != "Normalize" and (name, where) not in _MODULES:
            raise HashbenchError(
                f"{kind} has the module {name} ({where}) of sentence-transformers, which hashbench does not apply. "
                "Compute the vectors with sentence-transformers, and pass their file with --from."
            )
    is_normalised = "Normalize" in dict(modules)
    return SentenceSettings(" and ".join(map(str, filter(None, modes))), is_normalised, max_length, bool(is_lowered))


def digest_of(folder: Path) -> str:
    """Compute a digest of a model's files, 16 hex digits."""
    with reading(folder):
        inside = [file for file in (*folder.iterdir(), folder / _POOLING_FILE) if file.is_file()]
        files = sorted(file for file in inside if _FILES.fullmatch(file.relative_to(folder).as_posix()))
        states = [(file, file.stat()) for file in files]
        return _digest(folder, *((file, state.st_size, state.st_mtime_ns, state.st_ctime_ns) for file, state in states))


@lru_cache
def _digest(folder: Path, *files: tuple[Path, int, int, int]) -> str:
    """Compute the digest of files, given with their sizes and times, once per process."""
    digest = hashlib.sha256()
    for path, *_ in files:
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def download(model: str, revision: str | None, on_progress: Progress = silent) -> Path:
    """Download a model's files from the hub, or find them in its client's cache; return their folder, named by commit.

    The hub is the address in ``HF_ENDPOINT``. If it does not answer, the cache has to hold the whole model.
    """
    import huggingface_hub

    where = f"{model}{f'@{revision}' if revision else ''}"
    on_progress(f"fetching {where}", 0, 0)
    advice = "Check the name, or fetch the model on another machine and pass hf:FOLDER"
    with _failing(f"cannot fetch {where} from {huggingface_hub.constants.ENDPOINT}", advice):
        return Path(huggingface_hub.snapshot_download(model, revision=revision, **_DOWNLOADED))

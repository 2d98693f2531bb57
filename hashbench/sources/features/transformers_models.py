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
from hashbench.errors import HashbenchError, one_line
from hashbench.sources._torch import find_device, import_library, import_torch
from hashbench.store.inputs import reading

if TYPE_CHECKING:
    from torch import Tensor

PREFIX = "hf:"
POOLINGS = {"cls": "CLS", "mean": "mean", "projection": "projection"}  # as users type them and as rows show them
_HOW_TO_INSTALL = "features hf:MODEL need the library transformers, which is not installed: pip install transformers."
_HOW_TO_NAME = "name a folder, or a model of the hub as hf:OWNER/MODEL or hf:OWNER/MODEL@REVISION"
_HOW_TO_SAVE = "Save it with model.save_pretrained(FOLDER), and pass hf:FOLDER"
_ADD_PROCESSOR = "Put the model's preprocessor_config.json into its folder, by processor.save_pretrained(FOLDER)."
_ADD_TOKENIZER = (
    "Put the model's tokenizer.json and tokenizer_config.json into its folder, by tokenizer.save_pretrained(FOLDER)."
)
_PICKLES = (".bin", ".ckpt", ".h5", ".msgpack", ".pt", ".pth")
_FILES = re.compile(r"(1_Pooling/)?[^/]+\.(json|txt|model)|[^/]+\.safetensors")  # of a model that are read
_POOLING_FILE = "1_Pooling/config.json"  # of sentence-transformers
_MODULES = (("Transformer", ""), ("Pooling", "1_Pooling"))  # of sentence-transformers that are applied, and Normalize
_USUAL_LENGTH = 512  # tokens of a text, if neither tokenizer nor model has a limit
_NO_LIMIT = 1_000_000  # tokens; a tokenizer without a limit has 10^30
_DIGEST = 8  # hex digits of a folder's digest in names
_SHOWN = 3  # parameters, files or sizes in an error
_SHOWN_TEXT = 40  # characters
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
    if folder is None:
        head, colon, tail = text.rpartition(":")
        if colon and not re.search(r"[/\\]", tail):
            text, pooling = head, tail
            folder = _folder(text)
        if pooling is not None and pooling not in POOLINGS:
            raise HashbenchError(f"{kind} has pooling {pooling!r}, expected one of {', '.join(POOLINGS)}.")
    if folder is not None:
        return ModelName(text, None, pooling, folder)
    model, _, revision = text.partition("@")
    if not re.fullmatch(r"(\w[\w.-]*/)?\w[\w.-]*", model) or "--" in model:
        raise HashbenchError(f"{kind} is neither a folder that exists nor the name of a model; {_HOW_TO_NAME}.")
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
        self._lock = Lock()  # a tokenizer works for one thread at a time
        self._padding = "longest"
        name = parse(kind)
        folder = folder or name.folder
        if folder is None:
            self.folder = download(name.model, name.revision, on_progress)
            model, content = name.model, self.folder.name
            origin = f"{model}, commit {content}"
        else:
            self.folder = folder
            content = digest_of(folder)
            if name.folder is None and name.revision and not content.startswith(name.revision):
                raise HashbenchError(
                    f"the files in {folder} are not those of {kind}, but have the digest {content}. Pass the folder as "
                    f"--features hf:{folder}."
                )
            model = re.split("[@:]", name.short.removeprefix(PREFIX))[0]
            origin = f"{model}, files {content}"
        _check_safe(kind, self.folder)
        self._is_normalised = reads == "texts" and _normalises(kind, self.folder)
        self._projects = f"get_{reads.removesuffix('s')}_features"  # method of models of images and texts
        with _quiet(self.transformers.utils.logging):
            self.model, self.config = self._load()
            self._check_reads()
            self.prepare = self._image_processor() if reads == "images" else self._tokenizer()
        self._has_cls = self._finds_cls()
        self.pooling = self._choose_pooling(name.pooling)
        self.n_features = self._try_out()
        dtype = str(self.dtype).removeprefix("torch.")
        version = self.transformers.__version__
        pooling = f"{POOLINGS[self.pooling]}{', normalised' if self._is_normalised else ''}"
        self.provenance = f"{origin}, {pooling}, {dtype}, transformers {version}"
        self.recipe = {"model": model, "content": content, "pooling": self.pooling, "normalised": self._is_normalised}

    def of_batch(self, items: Sequence[Any]) -> "Tensor":
        """Compute the vectors (n, n_features), float32 or 64, of images (height, width, 3), uint8, or of texts."""
        try:
            vectors: Tensor = self._pooled(self._inputs(items)).to(self._wide)
            if self._is_normalised:
                vectors = self.torch.nn.functional.normalize(vectors)
        except self.torch.OutOfMemoryError as error:
            raise HashbenchError(f"{self.kind} does not fit into the GPU's memory: choose --device cpu.") from error
        except Exception as error:  # models expect inputs of many kinds
            if self.reads == "images":
                sizes = sorted({f"{item.shape[1]} x {item.shape[0]}" for item in items})
                what = f"images of {', '.join(sizes[:_SHOWN])} pixels"
                advice = "Give images of one size, or choose a model whose processor resizes them"
            else:
                what = f"texts such as {items[0][:_SHOWN_TEXT]!r}"
                advice = f"Check that the tokenizer in {self.folder} is the model's own, or choose another model"
            raise HashbenchError(
                f"{self.kind} ({type(self.model).__name__}) cannot be applied to {what}: {_reason(error)}. {advice}."
            ) from error
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
        """Load the model and its configuration; refuse weights with fewer or more parameters."""
        try:
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
        except Exception as error:  # damaged files, unknown architectures, code from the hub: errors of any kind
            raise HashbenchError(
                f"cannot load {self.kind} from {self.folder}: {_reason(error)}. Models that need code from the hub are "
                "not loaded; choose one that transformers contains."
            ) from error
        missing = sorted(key for key in info["missing_keys"] if ".pooler." not in f".{key}")  # which is not used
        if missing:
            shown = ", ".join(missing[:_SHOWN])
            raise HashbenchError(
                f"the weights in {self.folder} lack {len(missing)} parameters of {type(model).__name__}, such as "
                f"{shown}. {_HOW_TO_SAVE}."
            )
        used = {re.sub(r"\d+", "0", key) for key in model.state_dict()}
        left_out = sorted(key for key in info["unexpected_keys"] if re.sub(r"\d+", "0", key) in used)
        if left_out:
            raise HashbenchError(
                f"the weights in {self.folder} have layers that its config.json leaves out, such as {left_out[0]}. "
                f"Restore the number of layers in it, or s{_HOW_TO_SAVE[1:]}."
            )
        return model.eval().to(self.device), config

    def _check_reads(self) -> None:
        """Refuse a model of the other kind of items."""
        entry = {"images": "pixel_values", "texts": "input_ids"}[self.reads]
        if hasattr(self.model, self._projects) or self.model.main_input_name == entry:
            return
        other = "texts" if self.reads == "images" else "images"
        example = "facebook/dinov2-small" if self.reads == "images" else "sentence-transformers/all-MiniLM-L6-v2"
        raise HashbenchError(
            f"{self.kind} ({type(self.model).__name__}) does not read {self.reads}, only {other}. Choose a model of "
            f"{self.reads}, such as hf:{example}."
        )

    def _part(self, loader: Any, what: str, advice: str, **options: Any) -> Any:
        """Load what prepares the model's inputs."""
        try:
            return loader.from_pretrained(self.folder, **_LOCAL, **options)
        except Exception as error:  # as for the model
            raise HashbenchError(
                f"{self.kind} has no {what} that can be loaded ({_reason(error)}). {advice}"
            ) from error

    def _image_processor(self) -> Any:
        """Load the model's image processor, the one of Pillow, which gives the same bytes on all machines."""
        return self._part(self.transformers.AutoImageProcessor, "image processor", _ADD_PROCESSOR, backend="pil")

    def _tokenizer(self) -> Any:
        """Load the model's tokenizer, and limit the length of texts if it has no limit."""
        tokenizer = self._part(self.transformers.AutoTokenizer, "tokenizer", _ADD_TOKENIZER)
        text_config = getattr(self.config, "text_config", self.config)
        n_tokens, n_known = len(tokenizer), getattr(text_config, "vocab_size", 0)
        if 2 * n_tokens < n_known:  # without its files, transformers makes up one that knows no word
            raise HashbenchError(
                f"{self.kind} has a tokenizer of {n_tokens} tokens for a model of {n_known}: its own tokenizer files "
                f"are missing. {_ADD_TOKENIZER}"
            )
        recorded = _text_settings(self.folder)
        self._is_lowered = bool(recorded.get("do_lower_case"))
        longest = recorded.get("max_seq_length") or tokenizer.model_max_length
        positions = self._n_positions(text_config) or (_USUAL_LENGTH if longest > _NO_LIMIT else longest)
        tokenizer.model_max_length = min(longest, positions)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token  # its positions are masked
        return tokenizer

    def _n_positions(self, config: Any) -> int:
        """Return how many tokens a text may have; 0 if there is no limit."""
        n_positions = max(getattr(config, "max_position_embeddings", None) or 0, 0)  # of XLNet -1
        for name, module in self.model.named_modules():
            padding = getattr(module, "padding_idx", None)
            if "position" in name and padding is not None:  # RoBERTa and its relatives count on from that of padding
                return int(n_positions - padding - 1)
        return int(n_positions)

    # ---------------------------------------------------------------- pooling

    def _finds_cls(self) -> bool:
        """Return whether a CLS token comes first."""
        if self.reads == "images":
            names = ("cls_token", "class_embedding", "class_token")
            return any(name.rpartition(".")[2] in names for name, _ in self.model.named_parameters())
        first = self.prepare("text")["input_ids"][:1]
        return self.prepare.cls_token_id is not None and first == [self.prepare.cls_token_id]

    def _choose_pooling(self, chosen: str | None) -> str:
        """Return the pooling that the user chose, or the model's: its projection, that of its files, or its CLS token.

        Texts are pooled by the mean unless the files name another pooling.
        """
        has_projection = hasattr(self.model, self._projects) or type(self.model).__name__.endswith("WithProjection")
        if has_projection:
            possible = ["projection"]
        elif self.reads == "images":
            possible = ["cls", "mean"] if self._has_cls else ["mean"]
        else:
            possible = ["mean", "cls"] if self._has_cls else ["mean"]
        if chosen is None and self.reads == "texts" and not has_projection:
            chosen = _pooling_of_files(self.folder)
        if chosen is not None and chosen not in possible:
            raise HashbenchError(
                f"{self.kind} ({type(self.model).__name__}) has no pooling {chosen!r}, only {' and '.join(possible)}. "
                f"Write it after the name: hf:MODEL:{possible[0]}."
            )
        return chosen or possible[0]

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
        if self.reads == "images":
            return hidden[:, self._n_prefix :].mean(dim=1)
        mask = inputs["attention_mask"][..., None].to(self._wide)  # (n, n_tokens, 1)
        return (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)

    @property
    def _wide(self) -> Any:
        """The dtype of vectors, at least float32."""
        return self.torch.promote_types(self.dtype, self.torch.float32)

    @property
    def _n_prefix(self) -> int:
        """The number of tokens before those of patches: CLS, a distillation token and registers."""
        names = {name.rpartition(".")[2] for name, _ in self.model.named_parameters()}
        n_registers = getattr(self.config, "num_register_tokens", 0) or 0
        return int(self._has_cls) + ("distillation_token" in names) + int(n_registers)

    def _try_out(self) -> int:
        """Compute the vector of one item twice; refuse a model that fails, draws at random or gives no vector."""
        import numpy as np

        item = np.full((64, 64, 3), 128, np.uint8) if self.reads == "images" else "a text"
        first, second = (self([item]) for _ in range(2))
        if first.ndim != 2 or len(first) != 1:
            raise HashbenchError(f"{self.kind} gives an array of shape {first.shape} for one item, expected a vector.")
        if not np.array_equal(first, second):
            raise HashbenchError(f"{self.kind} gives other features each time; choose a model that draws nothing.")
        if self.reads == "texts":
            change = np.linalg.norm(first - self([item, f"{item} " * 4])[:1])
            if change > _ROUNDING * np.linalg.norm(first):
                self._padding = "max_length"  # as SigLIP, which reads the padding too
        return int(first.shape[1])


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


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(error).rstrip('.')[:200]}"


# ---------------------------------------------------------------- files of sentence-transformers


def _read_json(path: Path, default: Any) -> Any:
    """Read a file of settings; return the default if it is missing, refuse another type than the default's."""
    if not path.is_file():
        return default
    with reading(path, "JSON"):
        content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, type(default)):
        raise HashbenchError(f"{path} holds a {type(content).__name__}, expected a {type(default).__name__}.")
    return content


def _normalises(kind: str, folder: Path) -> bool:
    """Return whether the recorded modules normalise vectors; refuse modules that hashbench does not apply."""
    path = folder / "modules.json"
    with reading(path, "modules of sentence-transformers"):
        modules = [(module["type"].rpartition(".")[2], module["path"]) for module in _read_json(path, [])]
    for name, where in modules:
        if name != "Normalize" and (name, where) not in _MODULES:
            raise HashbenchError(
                f"{kind} has the module {name} ({where}) of sentence-transformers, which hashbench does not apply. "
                "Compute the vectors with sentence-transformers, and pass their file with --from."
            )
    return "Normalize" in dict(modules)


def _text_settings(folder: Path) -> dict[str, Any]:
    """Read the length of texts and whether they are lowered, if recorded."""
    paths = sorted(folder.glob("sentence_*_config.json"))  # of BERT, RoBERTa and others
    settings: dict[str, Any] = _read_json(paths[0], {}) if paths else {}
    longest = settings.get("max_seq_length")
    if longest is not None and (type(longest) is not int or longest < 1):
        raise HashbenchError(f"{paths[0]} has max_seq_length {longest!r}, expected a whole number from 1, or null.")
    return settings


def _pooling_of_files(folder: Path) -> str | None:
    """Read the recorded pooling; None if there is none."""
    path = folder / _POOLING_FILE
    content = _read_json(path, {})
    if not content:
        return None
    modes = [key for key, is_on in content.items() if key.startswith("pooling_mode_") and is_on is True]
    modes = modes or [f"pooling_mode_{content.get('pooling_mode')}"]
    poolings = {"pooling_mode_cls_token": "cls", "pooling_mode_cls": "cls", "pooling_mode_mean_tokens": "mean"}
    poolings["pooling_mode_mean"] = "mean"
    if len(modes) == 1 and modes[0] in poolings:
        return poolings[modes[0]]
    raise HashbenchError(
        f"{path} asks for {' and '.join(modes)}, and hashbench pools by cls or mean. Write one after the name: "
        "hf:MODEL:mean."
    )


# ---------------------------------------------------------------- files


def digest_of(folder: Path) -> str:
    """Compute a digest of a model's files, 16 hex digits."""
    with reading(folder):
        states = [(path, path.stat()) for path in _model_files(folder)]
        return _digest(folder, *((path, state.st_size, state.st_mtime_ns, state.st_ctime_ns) for path, state in states))


@lru_cache
def _digest(folder: Path, *files: tuple[Path, int, int, int]) -> str:
    """Compute the digest of files, given with their sizes and times, once per process."""
    digest = hashlib.sha256()
    for path, *_ in files:
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _model_files(folder: Path) -> list[Path]:
    files = [*folder.iterdir(), folder / _POOLING_FILE]
    return sorted(file for file in files if file.is_file() and _FILES.fullmatch(file.relative_to(folder).as_posix()))


def _check_safe(kind: str, folder: Path) -> None:
    """Refuse what is not a folder with a configuration and safetensors."""
    with reading(folder):
        if not folder.is_dir():
            raise HashbenchError(f"the weights of {kind} are a folder, got {folder}. Pass it as --features hf:FOLDER.")
        names = sorted(path.name for path in folder.iterdir())
    if "config.json" not in names:
        raise HashbenchError(f"{folder} is not a model of transformers: it has no config.json. {_HOW_TO_SAVE}.")
    _check_weights(names, str(folder))


def _check_weights(names: Sequence[str], where: str) -> None:
    """Refuse files of a model without safetensors."""
    if any(name.endswith(".safetensors") for name in names):
        return
    pickles = [name for name in names if name.endswith(_PICKLES)][:_SHOWN]
    why = f"only {', '.join(pickles)}, which could run code" if pickles else "no file of weights"
    raise HashbenchError(f"{where} has no weights in .safetensors files, but {why}. {_HOW_TO_SAVE}.")


def download(model: str, revision: str | None, on_progress: Progress = silent) -> Path:
    """Download a model's files from the hub; return their folder, whose name is the commit.

    The hub is the address in ``HF_ENDPOINT``, and files are kept in its client's cache. If the hub does not answer,
    what the cache holds is used.
    """
    import huggingface_hub
    from huggingface_hub import constants, errors

    where, endpoint = f"{model}{f'@{revision}' if revision else ''}", constants.ENDPOINT
    try:
        info = huggingface_hub.HfApi(endpoint=endpoint).model_info(model, revision=revision)
    except errors.GatedRepoError as error:
        raise HashbenchError(
            f"{model} is a gated model of {endpoint}. Accept its terms there, then set HF_TOKEN."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise HashbenchError(
            f"{model} has no revision {revision!r}; choose a branch, a tag or a commit of {endpoint}/{model}."
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise HashbenchError(
            f"there is neither a folder {model} nor a model of that name at {endpoint}, or it is private; "
            f"{_HOW_TO_NAME}."
        ) from error
    except Exception as error:  # no network, a broken answer, offline mode: errors of the library and of its client
        cached = huggingface_hub.try_to_load_from_cache(model, "config.json", revision=revision)
        if isinstance(cached, str):
            return Path(cached).parent
        raise HashbenchError(
            f"{where} is not in the cache, and {endpoint} cannot be reached: {_reason(error)}. Fetch the "
            "model on another machine, and pass hf:FOLDER."
        ) from error
    names = [file.rfilename for file in info.siblings or ()]
    _check_weights(names, f"{where} at {endpoint}")
    on_progress(f"fetching {where}, commit {info.sha}", 0, 0)
    wanted = [name for name in names if _FILES.fullmatch(name)]
    try:
        folder = huggingface_hub.snapshot_download(model, revision=revision, allow_patterns=wanted)
    except Exception as error:  # as above, and full disks
        raise HashbenchError(f"cannot fetch {where} from {endpoint}: {_reason(error)}. Try again.") from error
    return Path(folder)

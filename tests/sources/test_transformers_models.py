import http.server
import json
import re
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from helpers import tiny_models
from PIL import Image

from hashbench.adapter import Options
from hashbench.errors import HashbenchError
from hashbench.pipeline import preparation
from hashbench.sources.features import transformers_models
from hashbench.sources.features.extraction import extract, extract_texts
from hashbench.sources.features.transformers_models import Model, parse
from hashbench.sources.images import ImageArrays, ImageFiles
from hashbench.store import hdf5
from hashbench.store.hdf5 import read_model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.slow  # `make test-originals` has them

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 20, 20, 3)).astype(np.uint8)
IMAGES = ImageArrays(PIXELS)
TEXTS = ["a red text", "big", "a small blue text", *("a big green text " * n for n in range(1, 6))]
CPU = partial(Options, device="cpu")


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Folders of tiny models by family, made once."""
    folder = tmp_path_factory.mktemp("models")

    def find(family):
        if not (folder / family).exists():
            tiny_models.save(family, folder / family)
        return folder / family

    return find


@pytest.fixture
def copy(models, tmp_path):
    """Copy a model's folder, to be changed."""
    return lambda family: shutil.copytree(models(family), tmp_path / f"my {family}")


def of_images(folder, **options):
    return extract(f"hf:{folder}", IMAGES, CPU(**options))


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("kind", "parts", "stem"),
    [
        ("hf:facebook/dinov2-small", ("facebook/dinov2-small", None, None), "hf-facebook--dinov2-small"),
        ("hf:bert-base-uncased:cls", ("bert-base-uncased", None, "cls"), "hf-bert-base-uncased+cls"),
        ("hf:a/b@refs/pr/1:mean", ("a/b", "refs/pr/1", "mean"), "hf-a--b@refs--pr--1+mean"),
    ],
)
def test_a_name_has_a_model_a_revision_and_a_pooling(kind, parts, stem):
    name = parse(kind)
    assert (name.model, name.revision, name.pooling, name.folder) == (*parts, None)
    assert (name.short, name.stem) == (kind, stem)


@pytest.mark.parametrize(
    ("last", "model"),
    [("tiny (2)", "tiny-2"), ("models--x--y", "models-x-y"), ("(v1)", "v1"), (".a-(b", "a-b"), ("((", "model")],
)
def test_a_folder_is_recorded_by_its_last_name_and_the_digest_of_its_files(tmp_path, last, model):
    folder = tmp_path / "my models" / last
    folder.mkdir(parents=True)
    name = parse(f"hf:{folder}:cls")
    assert name == (str(folder), None, "cls", folder)
    short = name.short
    assert short == f"hf:{model}@{transformers_models.digest_of(folder)[:8]}:cls"
    again = parse(short)
    assert (again.model, again.pooling, again.folder) == (model, "cls", None)
    assert (again.short, again.stem) == (short, name.stem)
    (folder / "config.json").touch()
    assert name.short != short


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("hf:", "hf: is neither a folder that exists nor the name of a model; name a folder, or"),
        ("hf:/nowhere/model", "hf:/nowhere/model is neither a folder that exists nor"),
        ("hf:a/b:max", "has pooling 'max', expected one of cls, mean, projection"),
    ],
)
def test_a_name_that_is_neither_model_nor_folder_is_refused(kind, words):
    with pytest.raises(HashbenchError, match=words):
        parse(kind)


# ---------------------------------------------------------------- images


def resized(size):
    """Return the images as the tiny ViT sees them: bilinear, -1 to 1, channels first."""
    images = [Image.fromarray(pixels).resize((size, size), Image.Resampling.BILINEAR) for pixels in PIXELS]
    return torch.from_numpy(np.stack(images).transpose(0, 3, 1, 2) / 127.5 - 1).float()


def prepared_by(processor, folder):
    pil = processor.from_pretrained(folder)
    return pil(images=[Image.fromarray(pixels) for pixels in PIXELS], return_tensors="pt").pixel_values


def vit(folder):
    return transformers.ViTModel.from_pretrained(folder)(resized(16)).last_hidden_state[:, 0]


def dinov2(folder):
    from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil

    model = transformers.Dinov2Model.from_pretrained(folder)
    return model(prepared_by(BitImageProcessorPil, folder)).pooler_output


def convnext(folder):
    from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil

    model = transformers.ConvNextModel.from_pretrained(folder)
    maps = model(prepared_by(ConvNextImageProcessorPil, folder)).last_hidden_state  # (n, 8, height, width)
    return model.layernorm(maps.flatten(2).mean(dim=2))


def clip(folder):
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    model = transformers.CLIPModel.from_pretrained(folder)
    pooled = model.vision_model(prepared_by(CLIPImageProcessorPil, folder)).pooler_output
    return pooled @ model.visual_projection.weight.T


FOUR = [(vit, "CLS", 16), (dinov2, "CLS", 16), (convnext, "mean", 8), (clip, "projection", 6)]
four = pytest.mark.parametrize(("compute", "pooling", "n_features"), FOUR, ids=[row[0].__name__ for row in FOUR])


@four
@torch.inference_mode()
def test_features_are_those_of_the_model_called_by_hand(models, compute, pooling, n_features):
    folder = models(compute.__name__)
    extracted = of_images(folder)
    assert (extracted.features.shape, extracted.features.dtype) == ((40, n_features), np.float32)
    np.testing.assert_allclose(extracted.features, compute(folder), rtol=1e-4, atol=1e-5)
    assert extracted.remark == f" ({pooling})"
    version = transformers.__version__
    digest = transformers_models.digest_of(folder)
    assert extracted.description == (
        f"{folder.name}, files {digest}, {pooling}, float32, transformers {version}, on cpu"
    )


def test_preparing_twice_gives_the_same_bytes(models, data, monkeypatch):
    first = of_images(models("vit")).features.tobytes()
    shutil.rmtree(data)
    n_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(n_threads + 1)
        assert of_images(models("vit")).features.tobytes() == first
    finally:
        torch.set_num_threads(n_threads)
    assert len(list((data / "features").glob("hf-*.h5"))) == 1
    monkeypatch.setattr(Model, "of_batch", lambda *arguments: pytest.fail("computed again"))
    monkeypatch.setattr(Model, "_try_out", lambda model: 16)
    assert of_images(models("vit")).features.tobytes() == first


def test_other_items_are_not_those_of_the_cache(models):
    vit, bert = (f"hf:{models(family)}" for family in ("vit", "bert"))
    first, other = (extract(vit, ImageArrays(pixels), CPU()).features for pixels in (PIXELS, PIXELS[::-1].copy()))
    np.testing.assert_allclose(first, other[::-1], rtol=1e-4, atol=1e-5)
    assert not np.allclose(first, other, atol=1e-2)
    first, other = (extract_texts(bert, texts, CPU()).features for texts in (["red", "big"], ["big", "red"]))
    np.testing.assert_allclose(first, other[::-1], rtol=1e-4, atol=1e-5)
    assert not np.allclose(first, other, atol=1e-2)


def test_a_tokenizer_works_for_one_thread_at_a_time(models):
    model = Model(f"hf:{models('bert')}", "texts", device="cpu")
    tokenize, running, most = model.prepare, [], []

    def slow(*arguments, **options):
        running.append(None)
        most.append(len(running))
        time.sleep(0.05)
        running.pop()
        return tokenize(*arguments, **options)

    model.prepare = slow
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(model._inputs, [["red"]] * 4))
    assert most == [1] * 4


@torch.inference_mode()
def test_the_mean_is_that_of_patches_without_cls_and_registers(models):
    folder = models("registers")
    from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil

    model = transformers.Dinov2WithRegistersModel.from_pretrained(folder)
    tokens = model(prepared_by(BitImageProcessorPil, folder)).last_hidden_state  # (n, 1 + 3 + 4, 16)
    assert tokens.shape[1] == 8
    extracted = of_images(f"{folder}:mean")
    np.testing.assert_allclose(extracted.features, tokens[:, 4:].mean(dim=1), rtol=1e-4, atol=1e-5)
    assert extracted.remark == ""  # its name has it


@torch.inference_mode()
def test_a_class_of_images_only_keeps_its_projection(models):
    folder = models("clip-vision")
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    model = transformers.CLIPVisionModelWithProjection.from_pretrained(folder)
    extracted = of_images(folder)
    expected = model(prepared_by(CLIPImageProcessorPil, folder)).image_embeds
    np.testing.assert_allclose(extracted.features, expected, rtol=1e-4, atol=1e-5)
    assert extracted.remark == " (projection)"


def test_the_head_of_a_classifier_is_left_out(models, tmp_path):
    folder = tmp_path / "classifier"
    base = transformers.ViTModel.from_pretrained(models("vit"))
    classifier = transformers.ViTForImageClassification(base.config)
    classifier.vit.load_state_dict(base.state_dict(), strict=False)
    classifier.save_pretrained(folder)
    shutil.copy(models("vit") / "preprocessor_config.json", folder)
    np.testing.assert_array_equal(of_images(folder).features, of_images(models("vit")).features)


def test_files_of_different_sizes_are_seen_as_they_are(models, tmp_path):
    paths = [tmp_path / f"{height}.png" for height in (8, 12, 20)]
    for path, pixels in zip(paths, PIXELS, strict=False):
        Image.fromarray(pixels[: int(path.stem)]).save(path)
    folder = models("vit")
    features = extract(f"hf:{folder}", ImageFiles(paths), CPU()).features
    expected = Model(f"hf:{folder}", "images", device="cpu")([PIXELS[row, : int(paths[row].stem)] for row in range(3)])
    np.testing.assert_array_equal(features, expected)


# ---------------------------------------------------------------- texts


@torch.inference_mode()
def by_hand(folder, pooling):
    """Compute the vectors of texts one by one, without padding."""
    model, rows = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False), []
    for text in TEXTS:
        words = [tiny_models._WORDS.index(word) for word in text.split()][:10]
        tokens = model(torch.tensor([[2, *words, 3]])).last_hidden_state[0]
        rows.append(tokens[0] if pooling == "cls" else tokens.mean(dim=0))
    return torch.stack(rows).numpy()


@pytest.mark.parametrize(("pooling", "remark"), [("", " (mean)"), (":mean", ""), (":cls", "")])
def test_vectors_of_texts_are_those_of_each_text_computed_by_hand(models, pooling, remark):
    folder = models("bert")
    extracted = extract_texts(f"hf:{folder}{pooling}", TEXTS, CPU())
    expected = by_hand(folder, pooling.removeprefix(":"))
    np.testing.assert_allclose(extracted.features, expected, rtol=1e-4, atol=1e-5)
    assert extracted.remark == remark


def test_portable_vectors_are_exact_to_float16_whatever_else_is_in_their_batch(models):
    folder = models("bert")
    together = extract_texts(f"hf:{folder}", TEXTS, CPU(), is_portable=True)
    alone = [extract_texts(f"hf:{folder}", [text], CPU(), is_portable=True).features[0] for text in TEXTS]
    np.testing.assert_array_equal(together.features, alone)
    np.testing.assert_array_equal(together.features, together.features.astype(np.float16))
    np.testing.assert_allclose(together.features, by_hand(folder, "mean"), rtol=1e-3)
    assert "float64" in together.description


@pytest.mark.parametrize(
    "content", [{"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, {"pooling_mode": "cls"}]
)
def test_texts_are_pooled_as_sentence_transformers_recorded(copy, content):
    folder = copy("bert")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(content))
    assert extract_texts(f"hf:{folder}", TEXTS, CPU()).remark == " (CLS)"
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(HashbenchError, match=r"has no pooling 'max', only cls and mean. .* hf:MODEL:mean"):
        extract_texts(f"hf:{folder}", TEXTS, CPU())
    assert extract_texts(f"hf:{folder}:mean", TEXTS, CPU()).features.shape == (8, 16)


@pytest.mark.parametrize(("family", "n_positions"), [("bert", 12), ("siglip", 12), ("clip", 12), ("t5", 512)])
@pytest.mark.parametrize("limit", [None, 7, 512])
def test_texts_are_as_long_as_tokenizer_and_positions_allow(copy, family, n_positions, limit):
    folder = copy(family)
    tiny_models.edit_json(folder / "tokenizer_config.json", model_max_length=limit or 10**30)
    model = Model(f"hf:{folder}", "texts", device="cpu")
    assert model._inputs(["red " * 600])["input_ids"].shape == (1, min(limit or n_positions, n_positions))
    assert model(["red " * 600]).shape == (1, model.n_features)


@torch.inference_mode()
@pytest.mark.parametrize("scale", [1, 1e-3])
def test_siglip_reads_texts_padded_to_its_full_length(copy, scale):
    folder = copy("siglip")
    model = transformers.SiglipModel.from_pretrained(folder)
    for parameter in model.text_model.head.parameters():
        parameter.mul_(scale)
    model.save_pretrained(folder)
    expected = model.text_model(torch.tensor([[2, 6, 3, *[0] * 9]])).pooler_output
    extracted = extract_texts(f"hf:{folder}", ["red", "a text"], CPU())
    np.testing.assert_allclose(extracted.features[:1], expected, rtol=1e-4, atol=1e-5 * scale)


def with_modules(folder, *names):
    """Write the files of sentence-transformers."""
    paths = {"Transformer": "", "Pooling": "1_Pooling"}
    modules = [
        {"name": str(idx), "path": paths.get(name, f"{idx}_{name}"), "type": f"sentence_transformers.{name}"}
        for idx, name in enumerate(names)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 4, "do_lower_case": true}')


def test_length_case_and_norm_are_those_that_sentence_transformers_recorded(copy, models):
    folder, expected = copy("bert"), by_hand(models("bert"), "mean")[:3]
    with_modules(folder, "Transformer", "Pooling", "Normalize")
    extracted = extract_texts(f"hf:{folder}", ["A red text", "BIG", "a small blue text"], CPU())
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(extracted.features[1], expected[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(extracted.features, axis=1), 1, rtol=1e-5)
    assert not np.allclose(extracted.features[0], expected[0], atol=1e-3)  # cut to two words
    np.testing.assert_array_equal(extracted.features[0], extract_texts(f"hf:{folder}", ["a red"], CPU()).features[0])
    assert ", mean, normalised, float32" in extracted.description
    with_modules(folder, "Transformer", "Pooling", "Dense")
    with pytest.raises(HashbenchError, match=r"the module Dense \(2_Dense\) of .* pass their file with --from"):
        extract_texts(f"hf:{folder}", TEXTS, CPU())
    for content in (
        {"modules.json": "[1]"},
        {"modules.json": "[]", "sentence_bert_config.json": '{"max_seq_length": "x"}'},
    ):
        for name, text in content.items():
            (folder / name).write_text(text)
        with pytest.raises(HashbenchError, match=r"cannot read .*my bert as settings of sentence-transformers"):
            extract_texts(f"hf:{folder}", TEXTS, CPU())


@torch.inference_mode()
def test_an_encoder_without_its_decoder_is_applied(models):
    folder = models("t5")
    tokens = transformers.T5EncoderModel.from_pretrained(folder)(torch.tensor([[2, 6, 3]])).last_hidden_state
    extracted = extract_texts(f"hf:{folder}", ["red", "a small blue text"], CPU())
    np.testing.assert_allclose(extracted.features[:1], tokens.mean(dim=1), rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_clip_projects_texts_too(models):
    folder = models("clip")
    model = transformers.CLIPModel.from_pretrained(folder)
    extracted = extract_texts(f"hf:{folder}", ["a red text"], CPU())
    pooled = model.text_model(torch.tensor([[2, 4, 6, 5, 3]])).pooler_output
    np.testing.assert_allclose(extracted.features, pooled @ model.text_projection.weight.T, rtol=1e-4, atol=1e-5)


@pytest.fixture
def texts(tmp_path):
    """Write the texts and labels as a table and as lines."""
    rows = [f'{number},"{text}",{"AB"[number % 2]}\n' for number, text in enumerate(TEXTS)]
    (tmp_path / "texts.csv").write_text("id,text,kind\n" + "".join(rows))
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS) + "\n")
    return tmp_path


def test_texts_of_a_column_and_of_lines_give_the_same_dataset(models, texts, hashbench, data):
    folder, datasets = models("bert"), []
    labels = ("--labels", f"{texts}/texts.csv:kind")
    for name, items in {"column": "texts.csv", "named": "texts.csv:text", "lines": "lines.txt"}.items():
        command = ["prepare", "--from", texts / items, *labels, "--name", name, "--device", "cpu", "--queries", 2]
        result = hashbench(*command, "--features", f"hf:{folder}")
        assert result.exit_code == 0, result.stderr
        datasets.append(hdf5.read_dataset(data / "datasets" / f"{name}.h5"))
    assert len({dataset.fingerprint for dataset in datasets}) == 1
    np.testing.assert_allclose(datasets[0].features, by_hand(folder, "mean"), rtol=1e-4, atol=1e-5)
    assert re.fullmatch(r"hf:bert@[0-9a-f]{8} \(mean\)", datasets[0].features_name)
    assert datasets[0].labels.tolist() == [0, 1] * 4
    assert datasets[0].about["features"].startswith("bert, files ")


@pytest.mark.parametrize(
    ("items", "content", "words"),
    [
        (
            "b.csv",
            "id,head,title\n1,a,b\n2,c,d\n",
            r"2 columns of words \(head, title\), .* Name the column: .*:COLUMN",
        ),
        ("c.csv", "id,title\n1,a\n2,\n", r"has nan in row 1 \(the first is 0\), expected a text"),
        ("d.csv", "id,text\n1,a\n2,\n", r"has nan in row 1"),
        ("e.txt", "a\n\nb\n", "has '' in row 1"),
        ("f.txt", "", r"of shape \(0,\), expected texts"),
    ],
)
def test_other_columns_and_missing_texts_are_refused(models, tmp_path, hashbench, items, content, words):
    (tmp_path / items.partition(":")[0]).write_text(content)
    command = ("prepare", "--from", tmp_path / items, "--name", "mine", "--features", f"hf:{models('bert')}")
    result = hashbench(*command, "--queries", 1)
    assert result.exit_code == 1, result.output
    assert re.search(words, result.stderr)


def test_a_folder_of_images_is_encoded_by_features_of_the_same_model(models, hashbench, tmp_path, data):
    for number, pixels in enumerate(PIXELS[:12]):
        (tmp_path / "photos" / "ab"[number // 6]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "photos" / "ab"[number // 6] / f"{number:02}.png")
    features = ("--features", f"hf:{models('vit')}", "--device", "cpu")
    assert hashbench("prepare", "--from", tmp_path / "photos", "--name", "photos", *features).exit_code == 0
    method = ("--method", "itq", "--bits", 4, "--keep-model")
    model = hashbench("encode", "--dataset", "photos", *method).stdout.splitlines()[1]
    result = hashbench("encode", "--model", model, "--from", tmp_path / "photos", "--output", tmp_path / "new.npy")
    assert result.exit_code == 0, result.stderr
    expected = read_model(model).method.transform(hdf5.read_dataset(data / "datasets" / "photos.h5").features)
    np.testing.assert_array_equal(np.load(tmp_path / "new.npy"), expected)


# ---------------------------------------------------------------- models that are refused


def without(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def pickled(folder):
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def damaged(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def incomplete(folder):
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "model.safetensors")
    save_file({key: state[key] for key in state if "layernorm" not in key}, folder / "model.safetensors")


def shortened(n_layers):
    return lambda folder: tiny_models.edit_json(folder / "config.json", num_hidden_layers=n_layers)


def with_code(folder):
    """Make it a model whose code is a file that must not be run; transformers would run a copy of it."""
    code = {"AutoConfig": "my_code.Config", "AutoModel": "my_code.Model"}
    tiny_models.edit_json(folder / "config.json", model_type="unheard-of", auto_map=code)
    (folder / "my_code.py").write_text(f"import pathlib\npathlib.Path({str(folder / 'it-ran')!r}).touch()\n")


@pytest.mark.parametrize(
    ("family", "reads", "change", "words"),
    [
        (
            "vit",
            "images",
            pickled,
            "cannot load hf:my-vit from .*no file named model.safetensors.* in .safetensors files",
        ),
        ("vit", "images", without("config.json"), "cannot load hf:my-vit from .*It has to be a model of transformers"),
        ("vit", "images", damaged, "cannot load hf:my-vit from .*Safetensor"),
        ("vit", "images", with_code, "cannot load hf:my-vit .* without code of its own"),
        (
            "vit",
            "images",
            incomplete,
            r"config\.json: \d+ are missing and 0 left out, such as .*layernorm.* Save the model",
        ),
        ("vit", "images", shortened(1), r"0 are missing and \d+ left out, such as layers\.1\."),
        ("bert", "texts", shortened(1), r"0 are missing and \d+ left out, such as encoder\.layer\.1\."),
        ("vit", "images", without("preprocessor_config.json"), "has no image processor that can be loaded"),
        ("bert", "texts", without("tokenizer.json"), "has no tokenizer that can be loaded"),
        (
            "bert",
            "texts",
            without("tokenizer.json", "tokenizer_config.json"),
            "a tokenizer of 5 tokens for a model of 11",
        ),
        ("bert", "images", None, r"\(BertModel\) does not read images, but input_ids. Choose a model of images"),
        (
            "convnext",
            "texts",
            None,
            r"\(ConvNextModel\) does not read texts, but pixel_values. Choose a model of texts",
        ),
    ],
)
def test_models_that_do_not_fit_are_refused(copy, family, reads, change, words):
    folder = copy(family)
    if change is not None:
        change(folder)
    with pytest.raises(HashbenchError, match=words):
        Model(f"hf:my-{family}", reads, folder=folder, device="cpu")
    assert not (folder / "it-ran").exists()


def test_code_of_the_hub_would_run_if_it_was_trusted(copy, tmp_path, monkeypatch):
    from transformers import dynamic_module_utils

    folder = copy("vit")
    with_code(folder)
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", sys.path[:])  # where transformers adds it
    monkeypatch.setitem(transformers_models._LOCAL, "trust_remote_code", True)
    with pytest.raises(HashbenchError):
        Model("hf:my-vit", "images", folder=folder, device="cpu")
    assert (folder / "it-ran").exists()


@pytest.mark.parametrize("kernel", ["them/kernel", "flash_attention_2"])
def test_kernels_of_the_hub_are_not_run(copy, models, monkeypatch, kernel):
    from transformers.integrations import hub_kernels

    folder = copy("clip")
    content = json.loads((folder / "config.json").read_text())
    content["text_config"]["attn_implementation"] = content["attn_implementation"] = kernel
    (folder / "config.json").write_text(json.dumps(content))
    monkeypatch.setattr(hub_kernels, "is_kernels_available", lambda *arguments, **options: True)
    monkeypatch.setattr(hub_kernels, "get_kernel", lambda *arguments, **options: pytest.fail("fetched a kernel"))
    texts = [Model(f"hf:{path}", "texts", device="cpu")(TEXTS) for path in (folder, models("clip"))]
    np.testing.assert_array_equal(*texts)


@pytest.mark.parametrize(
    ("family", "pooling", "words"),
    [
        ("convnext", "cls", "has no pooling 'cls', only mean. Write it after the name: hf:MODEL:mean"),
        ("clip", "mean", "has no pooling 'mean', only projection"),
        ("vit", "projection", "has no pooling 'projection', only cls and mean"),
    ],
)
def test_a_pooling_that_the_model_does_not_have_is_refused(models, family, pooling, words):
    with pytest.raises(HashbenchError, match=words):
        Model(f"hf:{models(family)}:{pooling}", "images", device="cpu")


def test_items_on_which_a_model_fails_are_refused(copy):
    folder = copy("bert")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["green"] = 11  # the model knows 0 to 10
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    words = r"\(BertModel\) cannot be applied to 'red': IndexError: .* Check that the tokenizer is the model's own"
    with pytest.raises(HashbenchError, match=words):
        extract_texts(f"hf:{folder}", ["red", "green"], CPU())
    folder = copy("dinov2")
    tiny_models.edit_json(folder / "preprocessor_config.json", do_resize=False, do_center_crop=False)
    model = Model(f"hf:{folder}", "images", device="cpu")
    with pytest.raises(
        HashbenchError, match=r"to images of shapes \[\(14, 28, 3\), \(28, 28, 3\)\]: .* Give images of one size, or"
    ):
        model([np.zeros((14, 28, 3), np.uint8), np.zeros((28, 28, 3), np.uint8)])


def test_texts_of_a_model_without_a_mask_do_not_depend_on_others_of_their_batch(copy):
    folder = copy("clip")
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_input_names": ["input_ids"]}))
    model = Model(f"hf:{folder}", "texts", device="cpu")
    np.testing.assert_allclose(model(["red"]), model(["red", "big small red green blue a text"])[:1], atol=1e-6)


def test_values_that_are_not_finite_are_refused(copy):
    from safetensors.torch import load_file, save_file

    folder = copy("vit")
    state = load_file(folder / "model.safetensors")
    save_file({key: tensor * torch.inf for key, tensor in state.items()}, folder / "model.safetensors")
    with pytest.raises(HashbenchError, match=r"values that are not finite in torch\.float32\. Choose another model"):
        Model(f"hf:{folder}", "images", device="cpu")


def test_without_the_library_the_error_says_what_to_install(models, monkeypatch):
    kind = f"hf:{models('vit')}"
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(HashbenchError, match=r"transformers, which is not installed: pip install 'hashbench\[hf\]'"):
        Model(kind, "images")


@pytest.mark.parametrize("options", [("--image-size", 32), ("--weights", __file__)])
def test_options_of_other_networks_are_refused(tmp_path, hashbench, options):
    Image.new("RGB", (8, 8)).save(tmp_path / "one.png")
    result = hashbench("prepare", "--from", tmp_path, "--name", "mine", "--features", "hf:a/b", *options)
    assert result.exit_code == 1


# ---------------------------------------------------------------- datasets

PHOTOS = """
import numpy as np
from hashbench.plugins import Dataset, DatasetAdapter, extract
from hashbench.sources.images import ImageArrays

class Photos(DatasetAdapter):
    name, summary, features, needs = "photos", "Photos.", ("pixels", "hf:MODEL"), "nothing"
    def prepare(self):
        rows = np.arange(40)
        pixels = np.random.default_rng(0).integers(0, 256, (40, 20, 20, 3)).astype(np.uint8)
        extracted = extract(self.kind, ImageArrays(pixels), self.options)
        return Dataset(self.name, extracted.features, rows[:8], rows[8:], rows[8:], "same-label", labels=rows % 4,
                       features_name=self.kind + extracted.remark, about=extracted.about)
"""


def test_a_folder_is_remembered_under_the_name_of_its_features(plugin, copy, hashbench, data, monkeypatch):
    plugin("photos", PHOTOS, "datasets", "Photos")
    folder = copy("vit")
    result = hashbench("prepare", "photos", "--features", f"hf:{folder}", "--device", "cpu")
    assert result.exit_code == 0, result.stderr
    name = f"my-vit@{transformers_models.digest_of(folder)[:8]}"
    path = data / "datasets" / f"photos-hf-{name}.h5"
    assert result.stdout.startswith(f"prepared {path}\n")
    first = preparation.find_dataset(f"photos:hf:{name}")
    assert first.features_name == f"hf:{name} (CLS)"
    assert preparation.find_dataset(f"photos:hf:{folder}") == first
    assert "photos" not in preparation.find_unprepared()
    assert preparation.load_dataset(f"photos:hf:{name}")[1] == ""
    folder.rename(folder.with_name("elsewhere"))
    assert preparation.load_dataset(f"photos:hf:{name}")[1] == ""
    monkeypatch.setattr(preparation, "_versions_of", lambda name: "other code")
    again = f"hashbench prepare photos --features hf:{name} (made by another version)"
    assert preparation.find_unprepared()[f"photos:hf:{name}"] == again
    with pytest.raises(HashbenchError, match=r"which you chose earlier\. Give --features hf:FOLDER again"):
        preparation.load_dataset(f"photos:hf:{name}")
    shutil.copytree(folder.with_name("elsewhere"), folder)
    tiny_models.edit_json(folder / "config.json", layer_norm_eps=0.1)
    with pytest.raises(HashbenchError, match=r"are not those of hf:my-vit@\w+, .* as --features hf:/"):
        preparation.load_dataset(f"photos:hf:{name}")


def test_classes_of_features_of_a_folder_can_be_hidden(plugin, models, hashbench):
    plugin("photos", PHOTOS, "datasets", "Photos")
    kind = f"hf:{models('vit')}"
    command = ("prepare", "photos", "--features", kind, "--unseen-classes", 2, "--fold", 0, "--device", "cpu")
    result = hashbench(*command)
    assert result.exit_code == 0, result.stderr
    assert hashbench(*command).stdout.startswith("reused")
    dataset, words = preparation.load_dataset(f"photos-unseen2-fold0:{kind}")
    assert (words, len(np.unique(dataset.labels[dataset.query]))) == ("", 2)
    assert dataset.features_name.startswith("hf:vit@")
    shutil.rmtree(preparation.dataset_path("photos").parent)
    assert preparation.load_dataset(f"photos-unseen2-fold0:{kind}")[1] == "prepared"


# ---------------------------------------------------------------- the hub


class Hub(http.server.BaseHTTPRequestHandler):
    """Answer as the hub does: the models in ``server.repositories``, each with its commits and their folders."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, _ = self.path.partition("?")
        self.server.paths.append(path)
        api = re.fullmatch(r"/api/models/(\w+/\w+)(?:/(revision|tree)/([^/]+))?", path)
        file = re.fullmatch(r"/(\w+/\w+)/resolve/([^/]+)/(.+)", path)
        commits = self.server.repositories.get((api or file)[1], {}) if api or file else {}
        if not commits:
            return self.answer(404, b"", {"X-Error-Code": "RepoNotFound"})
        names = {"main": next(reversed(commits)), **{commit: commit for commit in commits}}
        commit = names.get((api[3] or "main") if api else file[2])
        if commit is None:
            return self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
        folder = commits[commit]
        if file:
            content = (folder / file[3]).read_bytes()
            return self.answer(200, content, {"X-Repo-Commit": commit, "ETag": f'"{hash(content):x}"'})
        paths = sorted(path for path in folder.iterdir())
        if api[2] == "tree":
            entries = [{"type": "file", "path": p.name, "size": p.stat().st_size, "oid": "0" * 40} for p in paths]
            return self.answer(200, json.dumps(entries).encode(), {})
        about = {"id": api[1], "sha": commit, "siblings": [{"rfilename": path.name} for path in paths]}
        return self.answer(200, json.dumps(about).encode(), {})

    do_HEAD = do_GET

    def answer(self, status, content, headers):
        self.send_response(status)
        for key, value in {"Content-Length": len(content), "Content-Type": "application/json", **headers}.items():
            self.send_header(key, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


OLD, NEW = "0" * 39 + "1", "0" * 39 + "2"


@pytest.fixture
def hub(models, copy, tmp_path, monkeypatch):
    """A hub on loopback with a model of two commits, the newer one with code, and one of pickles."""
    from huggingface_hub import constants

    newer = copy("vit")
    tiny_models.edit_json(newer / "preprocessor_config.json", do_normalize=False)
    (newer / "code.py").touch()
    pickles = tmp_path / "pickles"
    shutil.copytree(models("vit"), pickles)
    pickled(pickles)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        server.repositories = {"me/vit": {OLD: models("vit"), NEW: newer}, "me/pickles": {NEW: pickles}}
        server.paths = []
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        endpoint = (
            f"http://127.0.0.1:{server.server_port}"  # as the client reads it from HF_ENDPOINT when it is imported
        )
        address = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, endpoint)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address)
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def of_hub(kind):
    return extract(kind, IMAGES, CPU())


def test_a_model_of_the_hub_is_that_of_its_newest_commit_or_of_the_revision(hub, models):
    newest, old = of_hub("hf:me/vit"), of_hub(f"hf:me/vit@{OLD}")
    assert newest.description.startswith(f"me/vit, commit {NEW}, CLS, float32")
    assert old.description.startswith(f"me/vit, commit {OLD}, CLS, float32")
    np.testing.assert_array_equal(old.features, of_images(models("vit")).features)
    assert not np.array_equal(newest.features, old.features)
    assert not any(path.endswith(".py") for path in hub.paths)


def test_without_the_hub_the_cache_is_used(hub, monkeypatch):
    from huggingface_hub import constants

    first = of_hub("hf:me/vit")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    again = of_hub("hf:me/vit")
    assert again.description == first.description
    np.testing.assert_array_equal(again.features, first.features)
    with pytest.raises(HashbenchError, match=r"cannot fetch you/vit from http://127\.0\.0\.1:9: .* pass hf:FOLDER"):
        of_hub("hf:you/vit")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("hf:you/vit", "cannot fetch you/vit from http.*: RepositoryNotFoundError: .* Check the name"),
        ("hf:me/vit@v3", "cannot fetch me/vit@v3 from http.*: RevisionNotFoundError: .* Check the name"),
        ("hf:me/pickles", "cannot load hf:me/pickles .* with weights in .safetensors files"),
    ],
)
def test_models_that_the_hub_does_not_have_are_refused(hub, kind, words):
    with pytest.raises(HashbenchError, match=words):
        of_hub(kind)
    assert not any(path.endswith((".bin", ".py")) for path in hub.paths)

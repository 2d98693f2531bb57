"""Tiny models of transformers with seeded weights, saved as those of the hub are."""

import json


def save(name, folder):
    """Save a model of one family, with its processor or tokenizer, into a folder; return the folder."""
    import torch

    torch.manual_seed(0)
    model, *processors = FAMILIES[name]()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
    model.save_pretrained(folder)
    for processor in processors:
        processor.save_pretrained(folder)
    return folder


def _sizes(**more):
    return {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, **more}


def _vit():
    from transformers import ViTConfig, ViTModel
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    model = ViTModel(ViTConfig(**_sizes(image_size=16, patch_size=8)), add_pooling_layer=False)
    return model, ViTImageProcessorPil(size={"height": 16, "width": 16})


def _dinov2():
    from transformers import Dinov2Config, Dinov2Model
    from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil

    processor = BitImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 28, "width": 28})
    return Dinov2Model(Dinov2Config(**_sizes(image_size=28, patch_size=14))), processor


def _registers():
    from transformers import Dinov2WithRegistersConfig, Dinov2WithRegistersModel

    config = Dinov2WithRegistersConfig(**_sizes(image_size=28, patch_size=14, num_register_tokens=3))
    return Dinov2WithRegistersModel(config), _dinov2()[1]


def _convnext():
    from transformers import ConvNextConfig, ConvNextModel
    from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil

    config = ConvNextConfig(hidden_sizes=[4, 4, 8, 8], depths=[1, 1, 1, 1])
    return ConvNextModel(config), ConvNextImageProcessorPil(size={"shortest_edge": 64})


def _clip_processor():
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    return CLIPImageProcessorPil(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})


def _clip():
    from transformers import CLIPConfig, CLIPModel

    text = _sizes(vocab_size=len(_WORDS), max_position_embeddings=12, eos_token_id=3, bos_token_id=2)
    config = CLIPConfig(text_config=text, vision_config=_sizes(image_size=16, patch_size=8), projection_dim=6)
    return CLIPModel(config), _clip_processor(), _tokenizer()


def _clip_vision():
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

    config = CLIPVisionConfig(**_sizes(image_size=16, patch_size=8, projection_dim=6))
    return CLIPVisionModelWithProjection(config), _clip_processor()


def _bert():
    from transformers import BertConfig, BertModel

    config = BertConfig(**_sizes(vocab_size=len(_WORDS), max_position_embeddings=12))
    return BertModel(config, add_pooling_layer=False), _tokenizer()


def _siglip():
    from transformers import SiglipConfig, SiglipModel

    text = _sizes(vocab_size=len(_WORDS), max_position_embeddings=12, projection_size=16)
    config = SiglipConfig(text_config=text, vision_config=_sizes(image_size=16, patch_size=8))
    return SiglipModel(config), _tokenizer(model_input_names=["input_ids"])  # it reads padding, too


def _t5():
    from transformers import T5Config, T5EncoderModel

    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    return T5EncoderModel(T5Config(**sizes, vocab_size=len(_WORDS), pad_token_id=0, eos_token_id=3)), _tokenizer()


_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "text", "red", "green", "blue", "big", "small"]


def _tokenizer(**options):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(_WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokens = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **tokens, eos_token="[SEP]", bos_token="[CLS]", **options
    )


FAMILIES = {
    "vit": _vit,
    "dinov2": _dinov2,
    "registers": _registers,
    "convnext": _convnext,
    "clip": _clip,
    "clip-vision": _clip_vision,
    "bert": _bert,
    "siglip": _siglip,
    "t5": _t5,
}


def edit_json(path, **changes):
    """Change keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))

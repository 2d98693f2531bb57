"""Features computed from images or texts.

extraction           from images or texts to features of any kind, cached on disk block by block
gist                 GIST, as the hashing papers use it
backbones            the list of networks: sizes, addresses, checksums; without PyTorch
architectures        their layers
weights              their weights: located, read, checked, or drawn at random; applied to images, whole or only the
                     frozen layers, whose outputs are cached for training the others
transformers_models  models of the library transformers, from the hub or a folder
"""

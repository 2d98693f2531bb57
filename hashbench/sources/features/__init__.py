"""Features computed from images.

extraction     from images to features of any kind, cached on disk block by block
gist           GIST, as the hashing papers use it
backbones      the list of pretrained networks: sizes, addresses, checksums; without PyTorch
architectures  their layers
weights        their files: located, read, checked, and applied to images
activations    outputs of their frozen layers, cached for training the others
"""

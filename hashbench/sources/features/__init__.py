"""Features computed from images.

extraction     from images to features of any kind, kept on disk block by block
gist           GIST, as the hashing papers use it
backbones      the one list of pretrained networks: sizes, addresses, checksums; known without PyTorch
architectures  their layers
weights        their files: found, read, checked, and put to work
activations    what their frozen layers give, kept for those that train the others
"""

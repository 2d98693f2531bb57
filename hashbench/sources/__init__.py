"""Raw data: what adapters and commands read, download, draw and compute.

download     files fetched from the network, or requested from the user
array_files  features, labels and codes in files, whose suffix says the format (``FORMATS``), and in shards
formats      arrays of each format, listed by name
tables       tables of .csv, Parquet and Arrow files, and a text, code or label per line
images       images, read block by block from arrays, folders and archives
features/    from images to features: GIST and pretrained networks
splits       queries, database and training items, drawn with a seed, and classes left out of training
neighbours   exact nearest neighbours
inspection   checks of a dataset
pair_files   labelled pairs of items, by id or row
run_files    runs and relevance judgements of TREC
_torch       libraries that need not be installed, and PyTorch's devices
_tensors     PyTorch for modules that need it throughout
"""

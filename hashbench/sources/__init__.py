"""Where items come from: what adapters read, download, draw and compute.

download     files from elsewhere: fetched, and continued where they stopped, or asked of the user
array_files  features, labels and codes in the files people keep them in
shards       arrays that lie in several files, read in slices
images       images, read block by block from arrays, folders and archives
features/    from images to features: GIST and pretrained networks
splits       queries, database and training items, drawn with a seed
unseen       what is left of a dataset when training does not see some classes
_torch       PyTorch, and where it is to run
inspection   what to know about a dataset before trusting numbers made from it
"""

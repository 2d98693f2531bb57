"""Dataset adapters; a file may serve several named datasets.

digits          digits, digits-pairs, digits-unlabelled
cifar10         cifar10-s1, cifar10-s2, cifar10-s3, cifar10-gist-unlabelled
cifar100        cifar100
mulan           tmc2007, corel5k
nuswide         nuswide
imagenet100     imagenet100
mscoco          mscoco, mscoco-disjoint
mirflickr       mirflickr, mirflickr-38
labelme         labelme
wordnet         wordnet-minilm: embeddings of text
ann_benchmarks  ann-benchmarks: any file of that project
arrays          arrays: features and labels, or images, of the user
_published      base of all datasets from papers
_cifar          archives of cifar10 and cifar100
_image_lists    images named by lists: nuswide, imagenet100, mscoco, mirflickr
_unlabelled     levels by distance, without labels: digits, cifar10, labelme, arrays
"""

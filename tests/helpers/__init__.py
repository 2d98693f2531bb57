"""What tests share.

- ``oracles``: metrics, curves and affinities by brute force, to hold the product's against
- ``affinity_examples``: few codes with many ties, and affinities of all kinds between them
- ``learned_methods``: names of the learned methods, and what their tests ask of each
- ``striped_images``: images, random weights and a method for training from images
- ``cifar_files``: small archives as CIFAR's authors publish them
- ``result_files``, ``table_rows``, ``diff_rows``: rows of results, in files, tables and commits
- ``report_pages``, ``browser``, ``website``: pages, a browser that opens them, and a server on loopback
- ``clusters``: clusters of workers on loopback
- ``error_sentences``, ``score_assertions``: what is asserted of errors and of scores
- ``processes``: Python in a process of its own
- ``paths``: where the checkout and further data lie, and scripts and tables of the checkout
- ``documents``: blocks and commands of the documentation
- ``thoroughness``: how much tests do before a commit, and in all
"""

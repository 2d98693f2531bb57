"""What tests share.

oracles            metrics, curves and affinities by brute force
affinity_examples  few codes with many ties, and affinities of all kinds between them
learned_methods    names of the learned methods, and what their tests ask of each
striped_images     images, random weights and a method for training from images
cifar_files        small archives as CIFAR's authors publish them
result_files       rows of results, as files hold them
table_rows         rows of results made up for tables
diff_rows          rows of results in commits
report_pages       reports of results whose codes are cached
browser            a browser that opens them
website            a web server on loopback
clusters           Dask clusters on loopback
error_sentences    assertions of errors
bad_files          files of bad input, each wrong in one way
score_assertions   assertions of scores
artifacts          files of hashbench, edited as a program would that knows their form
waiting            waiting for other processes, with a deadline far away
processes          Python in a process of its own
few_packages       the same with the packages of the base install alone
scoring_calls      every way to score from Python
slices             codes of a database that is read in slices
json_output        what commands print as JSON
paths              where the checkout and further data are, and its scripts and tables
documents          blocks and commands of the documentation
losses             batches and checks that tests of losses share
command_options    all commands, and options of a command line from keywords
small_grids        the rows of a small grid, made once and copied
jobs               rows of jobs, and methods that wait or kill their process
script_values      what scripts say of codes
thoroughness       how much tests do: before a commit, or all
tiny_models        models of transformers with seeded weights, saved as those of the hub are
"""

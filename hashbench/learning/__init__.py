"""Methods that learn by gradient descent; PyTorch is imported when one is fitted.

base            the base class: parameters, front end, head; a method adds its loss in a file of methods/
loop            the loop that trains all methods
batch           the arguments of a loss
classes         base classes of methods that learn from classes, or from a target code per class
state           the state of training, its checkpoint, and detection of training that cannot recover
networks        heads and their initial weights, reproducible runs, augmented images
image_network   a pretrained network before the head, trained end to end
soft_histogram  the differentiable histogram of MIHash and TALR
targets         target codes, one per class; a new kind is a line of ``_KINDS``
"""

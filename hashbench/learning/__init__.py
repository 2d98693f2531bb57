"""Methods that learn by gradient descent; PyTorch is imported when one is fitted.

base            what they share: parameters, front end, head; a method adds its loss
loop            the one loop that trains them all
batch           what a loss may look at
classes         the base of methods that learn from classes, and of those with a target code for each
state           what decides how training goes on, and its checkpoint
held_out        training items that are held out to choose the epoch
collapse        when training has failed for good
networks        heads and their initial weights, reproducible runs, varied images
image_network   a pretrained network before the head, trained end to end
soft_histogram  the differentiable histogram of MIHash and TALR
"""

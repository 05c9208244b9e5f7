"""Parts of a training program that a trial takes out: the time without each is the least that a change can reach.

No source is edited. What is taken out answers as if it had worked, so that the script goes on.
"""

"""What the process does in its whole life: phases, stack samples, step times and counters, once a second to a file.

The thread that the account follows is the main thread, or the first other one that trains. Hooks at the entry
points of TensorFlow and Keras say which call is under way there (`clock`); a thread of ours samples its stack and
writes (`recorder`).
"""

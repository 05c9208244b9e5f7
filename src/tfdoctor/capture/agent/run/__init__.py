"""What the process does in its whole life: phases, stack samples, step times and counters, once a second to a file.

Hooks tell which call is under way (`clock`); a thread of ours samples the stack and writes (`recorder`).
"""

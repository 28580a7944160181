"""What an editor asks while a file is written: problems, completions, meanings, places, new names, fixes,
prompts.

Plain functions over texts and offsets; `server` alone knows the protocol. Code and templates of a task are
never run in the process that talks to the editor: what needs rows or rendering is done by `analysis` in a
process that may be ended at any time.
"""

"""Language server for editors: problems, completions, hovers, definitions, renames, fixes and prompt
previews.

The modules are plain functions on texts and offsets; only `server` uses the protocol. Code and templates of a
task never run in the process that serves the editor. Reading rows and rendering prompts happens in separate
processes (`analysis`), which can be stopped at any time.
"""

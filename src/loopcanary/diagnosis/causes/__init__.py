"""The rules for causes, by what the thread did. They are asked in the order of `built_in`.

Narrow evidence goes first: a name lookup sleeps in `poll` and would pass as network I/O, so the rule for
`dns` is asked before. Whatever a module does while it is imported is the import's, since the fix is the same.
To add a rule, write it and register it (`loopcanary.built_in`) where nothing before it explains its samples.
"""

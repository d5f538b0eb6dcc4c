"""The kinds of issues: a class in a file for each, with its words, document, identity and packing.

`built_in` names each class, and it is loaded with the first issue of its kind. What a kind may say, and what
it says unless its class says otherwise: `protocols.kinds.Kind`.
"""

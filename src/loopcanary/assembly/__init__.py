"""Wires the parts together; the only place that knows them all.

Each file is named after what it puts together:

agent         the engine of this process, armed
engine        the same, from its first loop on
extension     the native module, where it can be loaded
integrations  and tracers: what the agent brings with the libraries that a program uses
store         stores, and what dead and running processes left beside them
explanations  what reports ask the diagnosis
doctor        what works here; doctor_loops: which kinds of loops; doctor_plugins: what is registered
dump          another process, read from outside
top           all watched processes, from their flight files
notify        the follower of stores; notify_start: starts one beside a program
attach        another process, watched from now on; attach_inside: what runs in it
"""

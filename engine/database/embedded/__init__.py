"""The PostgreSQL server that comes with the program: found, made, started, shared, stopped.

The wheel's own launcher is not used: a killed process, a torn `postmaster.pid`, a quote in a path
or a run as root break it. Only its binaries are.
"""

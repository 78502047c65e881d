"""
Confining commands: what they may do is planned once, and enforced by whatever works here.

    settings -> plan -> bubblewrap | landlock + seccomp | seatbelt
"""

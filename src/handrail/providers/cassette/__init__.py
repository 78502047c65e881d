"""
Cassettes: answers of models, recorded once and replayed without a key or network.

    normalize       replaces secrets, paths of this machine and volatile text
    canonical       a request without its volatile parts: the key of a recording
    scrub           removes secrets and paths from a stream, across its deltas, with its chunk boundaries kept
    tape            the file format
    record, replay  the two transports
    match           which recording answers a request, and what may differ then
    miss            how a request differs from the nearest recording
"""

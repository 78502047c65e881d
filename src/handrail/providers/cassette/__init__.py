"""
Cassettes: answers of models, recorded once and replayed without a key and without a network.

    normalizer   what differs from machine to machine, and what must not be written
    canonical      a request without what is volatile: the key of a recording
    scrub          secrets and places taken out of a stream, across its deltas, chunk boundaries kept
    tape           the file format
    record, replay the two transports
    miss           how a request differs from the nearest recording
"""

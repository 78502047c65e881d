"""
Remote runs: what `handrail serve` may start, for whom, and the records of runs.

    config -> places -> runs -> run         a request becomes a governed run in a listed folder
                         |       |
                      records  events       on disk, so that nothing is lost with the process

`app` holds the requests; who may send them is decided before (`serve.guard`).
"""

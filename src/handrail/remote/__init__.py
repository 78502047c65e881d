"""
Runs started from elsewhere: what `handrail serve` may start, for whom, and what is kept of it.

    config -> places -> runs -> run         a request becomes a governed run in a listed folder
                         |       |
                      records  events       on disk, so that nothing is lost with the process

`app` holds the requests; who may send them is decided before (`serve.guard`).
"""

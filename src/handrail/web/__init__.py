"""
The page of `handrail view`: what sessions did, and the questions of those that run.

`app` answers the page's requests, `feed` follows running sessions, `export` writes one run as a file of its own. The
page itself lies in static/: HTML, CSS and ES modules, without a build step.
"""

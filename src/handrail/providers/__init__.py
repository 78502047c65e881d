"""
Providers of models: every wire format becomes the same stream of conversation events.

    Request -> api (writer) -> bytes -> transport -> bytes -> api (reader) -> StreamEvents

`choose` picks the api, `client` sends and retries. Importing this package loads no HTTP and no api.
"""

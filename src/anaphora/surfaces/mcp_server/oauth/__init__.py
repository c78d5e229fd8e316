"""OAuth 2.1 for the server over HTTP: how hosted clients get a token of the owner's server.

The server is both the authorization server and the resource: `provider` gives out codes and tokens,
`consent` keeps what waits for the owner's word, `page` shows it, `app` puts the endpoints together.
`address` is what of it needs no library.
"""

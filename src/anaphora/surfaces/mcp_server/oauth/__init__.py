"""OAuth 2.1 for the server over HTTP: how hosted clients get a token of the owner's server.

The server is both the authorization server and the resource: `provider` issues codes and tokens,
`consent` stores requests that wait for the owner, `page` shows them, `app` defines the endpoints.
"""

"""The HTTP server: the REST API, the web page, and tokens for them."""

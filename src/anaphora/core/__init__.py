"""What every room may use: settings, text, arguments, tracing."""

"""Commands that start without the command line; see `surfaces.cli.run_at_once`."""

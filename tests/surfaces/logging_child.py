"""Logs a word in every way in which libraries log: `logging_child.py WORD`."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from pathlib import Path

from anaphora.surfaces.logs import server_logs


def main() -> None:
    word = sys.argv[1]
    path = Path(f"/{word}")
    with server_logs(os.environ, "test"):
        with server_logs(os.environ, "inner"):
            logging.getLogger("anaphora").warning("%s of %d: %s", word, 3, path)
        logging.getLogger("anaphora").warning("%r", [word])
        logging.getLogger("anaphora").warning("it stopped: %s", OSError(28, word, str(path)))
        logging.getLogger("anaphora.store").error("at %(place)s", {"place": word})
        logging.getLogger("uvicorn.error").error(OSError(98, word))
        logging.getLogger("uvicorn.error").warning("returned '%s'.", word)
        logging.getLogger("mcp.server").warning(f"Unknown method {word}")
        logging.getLogger("asyncio").error(f"Exception in callback f('{word}')\nhandle: {word}")
        warnings.warn(word, stacklevel=1)
        try:
            raise ValueError(word)
        except ValueError:
            logging.getLogger("sqlalchemy").exception(word)


if __name__ == "__main__":
    main()

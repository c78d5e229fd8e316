"""One folder for each feature; `anaphora.registry` names them."""

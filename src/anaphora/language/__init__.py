"""Words of texts: the analyser, languages, names in the form in which they are compared."""

"""One module a format: other programs' exports in, `ImportedConversation` values out."""

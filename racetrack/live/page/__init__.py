"""Files of the page, which the server sends as they are."""

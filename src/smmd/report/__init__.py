"""Reports as single HTML files: ``page.Page`` is the paper they are written on."""

"""Files of the HTML pages: templates, style sheets, and scripts."""

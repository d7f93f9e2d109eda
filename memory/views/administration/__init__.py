"""Administration pages for memory. Text is shown only from spaces that the administrator may read."""

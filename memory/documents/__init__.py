"""Documents: upload, extraction, chunking, publishing, queries and deletion."""

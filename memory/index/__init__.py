"""The search index: collections in the vector store, and the jobs that fill and purge them."""

"""Administration: operations, filters, retention and reveals."""

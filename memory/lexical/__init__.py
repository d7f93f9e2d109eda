"""Words: one analyser and one formula on every database; the databases only propose candidates."""

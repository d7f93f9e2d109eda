"""Lexical search: one analyser and one scoring formula for all databases, which only propose candidates."""

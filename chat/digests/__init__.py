"""Digests: at times that a person chose, an answer tells them what happened since the last one.

`schedule` says when a digest is due, `scope` of which period and spaces a message tells, `switching` what a person may
choose, and `worker` posts the message and has it answered.
"""

"""Websockets: hub, frames, presence and notifications."""

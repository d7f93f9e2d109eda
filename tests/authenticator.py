"""A software authenticator: makes passkeys and signs with them, as browsers pass them to the page."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor
from fido2.cose import ES256
from fido2.utils import websafe_decode, websafe_encode

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


@dataclass
class SoftwareAuthenticator:
    """One passkey; `counter` is what it says in its next signature, and `origin` where the browser says it is."""

    origin: str = "http://localhost"
    counter: int = 0
    is_verified: bool = True
    id: bytes = field(default_factory=lambda: os.urandom(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    user_handle: bytes = b""

    def make(self, options: dict[str, Any]) -> str:
        """Answer the options of a registration."""
        public = options["publicKey"]
        self.user_handle = websafe_decode(public["user"]["id"])
        credential = b"\0" * 16 + len(self.id).to_bytes(2, "big") + self.id
        credential += cbor.encode(dict(ES256.from_cryptography_key(self.key.public_key())))
        data = self._data(public["rp"]["id"], ATTESTED) + credential
        attestation = cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client_data("webauthn.create", public["challenge"])
        return self._answer({"clientDataJSON": client, "attestationObject": attestation})

    def use(self, options: dict[str, Any]) -> str:
        """Answer the options of a sign-in."""
        public = options["publicKey"]
        data = self._data(public["rpId"], 0)
        client = self._client_data("webauthn.get", public["challenge"])
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        answer = {"clientDataJSON": client, "authenticatorData": data, "signature": signature}
        return self._answer({**answer, "userHandle": self.user_handle})

    def _data(self, rp_id: str, flags: int) -> bytes:
        flags |= PRESENT | (VERIFIED if self.is_verified else 0)
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + self.counter.to_bytes(4, "big")

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _answer(self, response: dict[str, bytes]) -> str:
        encoded = {name: websafe_encode(value) for name, value in response.items()}
        id = websafe_encode(self.id)
        return json.dumps({"id": id, "rawId": id, "type": "public-key", "response": encoded})

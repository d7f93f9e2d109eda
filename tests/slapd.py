"""A real LDAP directory: OpenLDAP's slapd on a port of its own, with three people and two groups."""

from __future__ import annotations

import datetime as dt
import ipaddress
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.server import wait_for
from tests.topology import free_port, is_open

SLAPD = shutil.which("slapd", path="/usr/sbin:/usr/lib/openldap:/usr/bin")
PEOPLE, GROUPS = "ou=people,dc=halden,dc=example", "ou=groups,dc=halden,dc=example"
READER, READER_PASSWORD = "cn=reader,dc=halden,dc=example", "reads only"
PASSWORD = "a password of the directory"

_CONFIGURATION = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
TLSCertificateFile {folder}/certificate.pem
TLSCertificateKeyFile {folder}/key.pem
database mdb
suffix "dc=halden,dc=example"
directory {folder}/data
rootdn "cn=admin,dc=halden,dc=example"
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{reader}" read by * none
"""
_ENTRIES = f"""
dn: dc=halden,dc=example
objectClass: dcObject
objectClass: organization
o: Halden

dn: {READER}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword: {READER_PASSWORD}

dn: {PEOPLE}
objectClass: organizationalUnit

dn: {GROUPS}
objectClass: organizationalUnit
"""
_PERSON = """
dn: uid={uid},{people}
objectClass: inetOrgPerson
uid: {uid}
cn: {name}
sn: {name}
userPassword: {password}
"""
_GROUP = """
dn: cn={name},{groups}
objectClass: groupOfNames
cn: {name}
"""


@dataclass(frozen=True, slots=True)
class Directory:
    """A running directory: its address without and with TLS, and the certificate that it shows."""

    url: str
    tls_url: str
    certificate: Path


def start(folder: Path) -> Iterator[Directory]:
    """Start a directory with Alice and Bob, who have emails, Carol, who has none, and the groups eng and it."""
    assert SLAPD
    (folder / "data").mkdir()
    _write_certificate(folder)
    configuration = folder / "slapd.conf"
    configuration.write_text(_CONFIGURATION.format(folder=folder, reader=READER))
    entries = _ENTRIES + "".join(_person(uid, name) for uid, name in (("alice", "Alice Owner"), ("bob", "Bob Team")))
    entries += _PERSON.format(uid="carol", name="Carol", people=PEOPLE, password=PASSWORD)
    entries += _group("eng", "alice", "bob") + _group("it", "bob")
    subprocess.run([f"{SLAPD}", "-T", "add", "-f", configuration], input=entries, text=True, check=True)
    ports = free_port(), free_port()
    url, tls_url = f"ldap://127.0.0.1:{ports[0]}", f"ldaps://127.0.0.1:{ports[1]}"
    process = subprocess.Popen([SLAPD, "-h", f"{url} {tls_url}", "-f", configuration, "-d", "0"])
    try:
        wait_for(lambda: all(map(is_open, ports)), "the directory")
        yield Directory(url, tls_url, folder / "certificate.pem")
    finally:
        process.terminate()
        process.wait(10)


def _person(uid: str, name: str) -> str:
    entry = _PERSON.format(uid=uid, name=name, people=PEOPLE, password=PASSWORD)
    return f"{entry}mail: {uid}@halden.example\n"


def _group(name: str, *members: str) -> str:
    return _GROUP.format(name=name, groups=GROUPS) + "".join(f"member: uid={uid},{PEOPLE}\n" for uid in members)


def _write_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())
    )

"""Signed manifests: an in-toto Statement in a DSSE envelope with an Ed25519 signature, beside the manifest.

A manifest's own hash detects damage, but anybody who can write the export can compute it again. A signature says that
the owner of the private key published these files with these privacy requirements. Other tools can read the envelope:
its payload is an in-toto Statement (v1) whose subjects are the files with their SHA-256, and whose predicate is the
manifest.

Needs the extra ``signing`` (the package ``cryptography``).
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import ConfigError, EngineError
from duckanon.io.disk import write_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:duckanon:manifest:v1"
PARTS_DIGEST = "duckanonParts"
"""The digest of all Parquet files of a folder. It is not the digest of any one file, so it has a name of its own."""
_PARTS = "**/*.parquet"
_SUFFIX, _ENVELOPE = ".json", ".dsse.json"
_OTHERS = 0o077


def envelope_path(manifest: Path) -> Path:
    """Return where the signed form of a manifest lies.

    Examples
    --------
    >>> envelope_path(Path("out/people.manifest.json")).name
    'people.manifest.dsse.json'
    """
    return manifest.with_name(manifest.name.removesuffix(_SUFFIX) + _ENVELOPE)


@dataclass(frozen=True)
class Signer:
    """A private key in a file, which is read only when it is used and never shown.

    Parameters
    ----------
    key : Path
        A file of ``new_keys``, or any Ed25519 key as PKCS 8 in PEM, readable by its owner only.
    """

    key: Path

    def require_usable(self) -> None:
        """Raise unless the file is a private, readable Ed25519 key: to be called before a long run."""
        self._private()

    def require_outside(self, folder: Path) -> None:
        """Raise a ConfigError if the key is in a folder of exports, whose content is given to others."""
        if self.key.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(
                f"The signing key {self.key.name!r} lies in the folder {folder.name!r}, where exports go: keep it "
                "where those who receive exports cannot get it."
            )

    def envelope(self, manifest: str, name: str) -> str:
        """Return the signed form of a manifest's text; ``name`` is that of its file."""
        private = self._private()
        payload = json.dumps(statement(manifest.encode(), name), ensure_ascii=False).encode()
        signature = private.sign(pre_authentication_encoding(PAYLOAD_TYPE, payload))
        content = {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [{"keyid": key_id(private.public_key()), "sig": base64.b64encode(signature).decode()}],
        }
        return json.dumps(content, indent=2) + "\n"

    def _private(self) -> Ed25519PrivateKey:
        ed25519, serialization = _cryptography()
        name = self.key.name
        try:
            # Checked on the open file: nobody can put another file there in between.
            descriptor = os.open(self.key, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise ConfigError(f"The signing key {name!r} is not a file.")
                if status.st_mode & _OTHERS or status.st_uid not in (os.geteuid(), 0):
                    raise ConfigError(
                        f"The signing key {name!r} can be read by others, or is not yours: make it private (chmod 600)."
                    )
                raw = file.read(100_000)
        except FileNotFoundError:
            raise ConfigError(f"There is no signing key {name!r}: make one with 'duckanon keys new'.") from None
        except OSError as error:
            raise ConfigError(f"The signing key {name!r} cannot be read: {os.strerror(error.errno or 0)}.") from None
        found_key: Ed25519PrivateKey | None = None
        with contextlib.suppress(Exception):
            found_key = serialization.load_pem_private_key(raw, password=None)
        if found_key is None or not isinstance(found_key, ed25519.Ed25519PrivateKey):
            raise ConfigError(f"{name!r} is not an Ed25519 private key in PEM without a password.")
        return found_key


@dataclass(frozen=True)
class PublicKey:
    """The public key that verifies signatures, read from a PEM file."""

    key: Ed25519PublicKey

    @classmethod
    def read(cls, path: Path) -> PublicKey:
        """Return the key in a file; a private key is refused, because it should not be where exports are verified."""
        ed25519, serialization = _cryptography()
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"The public key {path.name!r} cannot be read: {os.strerror(error.errno or 0)}."
            ) from None
        try:
            key = serialization.load_pem_public_key(raw)
        except Exception:
            key = None
        if not isinstance(key, ed25519.Ed25519PublicKey):
            raise ConfigError(
                f"{path.name!r} is not an Ed25519 public key in PEM: 'duckanon keys new' makes one, NAME.pub."
            )
        return cls(key)

    def problems(self, manifest: Path) -> list[str]:
        """Return what is wrong with the signed form of a manifest; nothing if it was signed with this key."""
        from cryptography.exceptions import InvalidSignature

        path = envelope_path(manifest)
        try:
            payload, signatures = opened(path)
        except FileNotFoundError:
            return [f"{path.name}: missing: the manifest is not signed"]
        except (OSError, ValueError):
            return [f"{path.name}: not a signed manifest, or damaged"]
        signed = pre_authentication_encoding(PAYLOAD_TYPE, payload)
        for signature in signatures:
            try:
                self.key.verify(signature, signed)
                break
            except InvalidSignature:
                continue
        else:
            return [f"{path.name}: no signature of this key"]
        return envelope_problems(manifest)


def signed(signer: Signer | None, text: str, manifest: Path) -> list[str]:
    """Write the signed form of a staged manifest beside it; return its name in a list, which is empty without a key."""
    if signer is None:
        return []
    path = envelope_path(manifest)
    write_text(path, signer.envelope(text, manifest.name))
    return [path.name]


def envelope_problems(manifest: Path) -> list[str]:
    """Return how the signed form of a manifest differs from it; nothing if there is no signed form.

    The signature itself is not verified.
    """
    path = envelope_path(manifest)
    try:
        payload, _ = opened(path)
        same = json.loads(payload) == statement(manifest.read_bytes(), manifest.name)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return [f"{path.name}: not a signed manifest, or damaged"]
    return [] if same else [f"{path.name}: it is not of this manifest"]


def opened(path: Path) -> tuple[bytes, list[bytes]]:
    """Return payload and signatures of an envelope; raise a ValueError if it is not an envelope."""
    try:
        content = json.loads(path.read_bytes())
        if set(content) != {"payloadType", "payload", "signatures"} or content["payloadType"] != PAYLOAD_TYPE:
            raise ValueError("another envelope")
        payload = base64.b64decode(content["payload"], validate=True)
        signatures = [base64.b64decode(s["sig"], validate=True) for s in content["signatures"]]
    except (binascii.Error, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("no envelope") from None
    return payload, signatures


def statement(manifest: bytes, name: str) -> dict[str, Any]:
    """Return the in-toto Statement of a manifest: its files and itself are the subjects, its content the predicate."""
    content = json.loads(manifest)
    subjects = [{"name": f["name"], "digest": {_digest_name(f): f["sha256"]}} for f in content["files"]]
    subjects.append({"name": name, "digest": {"sha256": hashlib.sha256(manifest).hexdigest()}})
    return {"_type": STATEMENT_TYPE, "subject": subjects, "predicateType": PREDICATE_TYPE, "predicate": content}


def _digest_name(file: Mapping[str, Any]) -> str:
    return PARTS_DIGEST if file["name"] == _PARTS else "sha256"


def pre_authentication_encoding(kind: str, payload: bytes) -> bytes:
    """Return the bytes that a DSSE signature signs: type and payload, each after its length.

    Examples
    --------
    >>> pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    encoded = kind.encode()
    return b" ".join((b"DSSEv1", b"%d" % len(encoded), encoded, b"%d" % len(payload), payload))


def key_id(public: Ed25519PublicKey) -> str:
    """Return the SHA-256 of a public key in DER."""
    _, serialization = _cryptography()
    raw = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(raw).hexdigest()


def new_keys(path: Path) -> tuple[Path, Path]:
    """Make a key pair: the private key in ``path``, readable by its owner only, and the public one in ``path.pub``.

    Neither file may exist already.
    """
    ed25519, serialization = _cryptography()
    private = ed25519.Ed25519PrivateKey.generate()
    public_path = path.with_name(f"{path.name}.pub")
    for one in (path, public_path):
        if os.path.lexists(one):
            raise ConfigError(f"{one.name!r} exists already: choose another name.")
    secret = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    open_ = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for one, content, mode in ((path, secret, 0o600), (public_path, open_, 0o644)):
        try:
            descriptor = os.open(one, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        except OSError as error:
            raise ConfigError(f"{one.name!r} cannot be written: {os.strerror(error.errno or 0)}.") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    return path, public_path


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise EngineError("Signed manifests need the package cryptography: pip install 'duckanon[signing]'.") from None
    return ed25519, serialization


__all__ = ["PublicKey", "Signer", "envelope_path", "envelope_problems", "new_keys", "signed"]

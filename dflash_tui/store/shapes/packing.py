"""How files say in their first bytes that they are packed, or no UTF-8. Unpacks nothing."""

GZIP = b"\x1f\x8b"
# What is not read here, and what to do first.
_FOREIGN = {
    b"\x28\xb5\x2f\xfd": "is packed with zstd: unpack it first",
    b"\xfd7zXZ\x00": "is packed with xz: unpack it first",
    b"BZh": "is packed with bzip2: unpack it first",
    b"PK\x03\x04": "is a zip archive: unpack it first",
    b"\xff\xfe": "is UTF-16 text: convert it first, iconv -f UTF-16 -t UTF-8",
    b"\xfe\xff": "is UTF-16 text: convert it first, iconv -f UTF-16 -t UTF-8",
}


def objection(head: bytes) -> str | None:
    """Why what begins so cannot be read as text, and what to do; None when it may be."""
    return next((reason for sign, reason in _FOREIGN.items() if head.startswith(sign)), None)

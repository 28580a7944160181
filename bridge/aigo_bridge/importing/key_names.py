"""Names in engines' logs → keys that AI GO accepts."""

from __future__ import annotations

import re

_KEY = re.compile(r"[A-Za-z0-9_\-]{1,250}")


def key_of(name: object) -> str:
    """A key for a name: the name itself when it is one, otherwise its letters and digits and a short hash.

    The same name always gives the same key and different names give different keys.
    """
    text = str(name)
    if _KEY.fullmatch(text):
        return text
    # Late: most names are keys, and the library of hashes takes longer to load than this one.
    import hashlib

    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', text).strip('-')[:200] or 'x'}-{digest}"

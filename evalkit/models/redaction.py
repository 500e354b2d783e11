"""Keys never leave the environment: what a server echoes is cleaned before anyone sees it."""

from __future__ import annotations

__all__ = ["Redactor"]


class Redactor:
    """Replaces every known key in a text; shows none of them itself.

    What is shorter than eight characters is a placeholder ("EMPTY", "ollama") and no secret.
    """

    __slots__ = ("_raw", "_secrets")

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._secrets = tuple(s for s in secrets if len(s) >= 8)
        self._raw = tuple(s.encode() for s in self._secrets)

    def __call__(self, text: str) -> str:
        """The text without keys."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, "[key]")
        return text

    def clean_bytes(self, data: bytes) -> bytes:
        """The same for a body that was not read yet."""
        for secret in self._raw:
            if secret in data:
                data = data.replace(secret, b"[key]")
        return data

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} keys)"

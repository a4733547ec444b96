"""The dashboard: one page that holds no data and asks the routes for it, and what a browser lets it do."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from fastapi.responses import HTMLResponse

PATH = "/dashboard"
PAGE = "dashboard.html"

_INLINE = r"<{0}>(.*?)</{0}>"


def page() -> HTMLResponse:
    """The page. It runs its own script and style, asks this server, and may do nothing else."""
    text = files(__package__).joinpath(PAGE).read_text(encoding="utf-8")
    return HTMLResponse(text, headers={"content-security-policy": policy(text)})


def policy(text: str) -> str:
    """The content security policy of a page with inline scripts and styles."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes('script', text)}",
            f"style-src {_hashes('style', text)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _hashes(tag: str, text: str) -> str:
    found = re.findall(_INLINE.format(tag), text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in found]
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"

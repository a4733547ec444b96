"""The HTTP door: what `noctuary serve` serves. Only that command imports what is in here."""

"""One bundle for all modules here."""

from tests.support.bundles import shop_bundle

__all__ = ["shop_bundle"]

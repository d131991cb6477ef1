"""Twins that speak a vendor's protocol, which the vendor's driver is tested against."""

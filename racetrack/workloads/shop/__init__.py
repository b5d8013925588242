"""An online shop: its pageviews, its customers, products and purchases, and a demo's views of them.

`load` is what the load generator asks for, and `check` what the harness does: neither imports the
other.
"""

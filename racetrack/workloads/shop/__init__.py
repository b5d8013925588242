"""An online shop: its pageviews, customers, products and purchases, and the views of a demo.

The load generator imports `load`, the harness imports `harness`; neither imports the other."""

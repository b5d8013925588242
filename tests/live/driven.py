"""Chromium driven by Playwright: a page that is typed into and looked at while a session runs."""

import time
from typing import Any

from playwright.sync_api import Browser, Page

WIDE, PHONE = (1440, 900), (390, 844)
# Layout shifts (CLS) and changes of text that screen readers announce, since the page's start.
WATCHERS = """
window.shifts = 0; window.spoken = 0; window.policy = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts += one.value;
}).observe({ type: "layout-shift", buffered: true });
document.addEventListener("securitypolicyviolation",
  (event) => window.policy.push(event.violatedDirective));
document.addEventListener("DOMContentLoaded", () => {
  for (const live of document.querySelectorAll("[aria-live], [role=status]")) {
    new MutationObserver(() => { window.spoken += 1; })
      .observe(live, { childList: true, characterData: true, subtree: true });
  }
});
"""


class Tab:
    """A page, and the errors that it has reported."""

    def __init__(
        self, browser: Browser, size: tuple[int, int] = WIDE, scheme: Any = "light"
    ) -> None:
        width, height = size
        self.page: Page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        self.page.set_default_timeout(10_000)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.errors.append(said.text) if said.type == "error" else None,
        )
        self.page.add_init_script(WATCHERS)

    def open(self, url: str) -> "Tab":
        """Load the page, and wait until it shows a session."""
        self.page.goto(url)
        self.wait("#connection", "Live")
        return self

    def text(self, selector: str) -> str:
        return (self.page.locator(selector).first.text_content() or "").strip()

    def wait(self, selector: str, text: str) -> None:
        """Wait until an element contains a text."""
        self.page.locator(selector, has_text=text).first.wait_for(state="attached")

    def enter(self, selector: str, text: str) -> None:
        """Fill in a field, and press Enter there."""
        self.page.fill(selector, text)
        self.page.press(selector, "Enter")

    def until(self, expression: str, given: Any = None, within_s: float = 20.0) -> None:
        """Wait until a JavaScript expression is true. Playwright's `wait_for_function` would
        evaluate text in the page, which its Content-Security-Policy forbids."""
        give_up_s = time.monotonic() + within_s
        while not self.page.evaluate(expression, given):
            assert time.monotonic() < give_up_s, (expression, given, self.text("body"))
            self.page.wait_for_timeout(200)

    def disabled(self, control: str) -> bool:
        return (
            self.page.locator(f'[data-control="{control}"]').last.get_attribute("aria-disabled")
            == "true"
        )

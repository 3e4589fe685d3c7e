"""What a person does in the Airflow UI, with a browser: logs in, starts an audit by the form, answers a review, and looks at pages."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

DAG = "kafka_reliability_audit"
_MILLISECONDS = 300_000


class Person:
    """One user of the UI, logged in."""

    def __init__(self, browser: Any, address: str, user: str) -> None:
        self.address = address
        self.context = browser.new_context(viewport={"width": 1280, "height": 1000})
        self.page = self.context.new_page()
        self.page.set_default_timeout(_MILLISECONDS)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(f"{address}/")
        self.page.fill("input[name=username]", user)
        self.page.fill("input[name=password]", user)
        self.page.keyboard.press("Enter")
        self.page.get_by_text("Browse").first.wait_for()

    def menu_entry(self) -> str:
        """Where the entry "Kafka reliability" of the menu Browse leads."""
        self.page.goto(f"{self.address}/")
        self.page.get_by_text("Browse").first.click()
        return urljoin(f"{self.address}/", self.page.get_by_role("menuitem", name="Kafka reliability").get_attribute("href"))

    def start_audit(self, *, policy_dir: str, fail_on: str) -> None:
        """Fill in the trigger form of the audit DAG and send it."""
        self.page.goto(f"{self.address}/dags/{DAG}")
        self.page.get_by_role("button", name="Trigger").first.click()
        form = self.page.get_by_role("dialog")
        form.get_by_role("button", name="Policy").click()
        form.locator("#element_policy_dir").fill(policy_dir)
        form.get_by_role("button", name="Gate").click()
        form.get_by_role("combobox").filter(visible=True).last.click()
        self.page.get_by_role("option", name=fail_on).click()
        form.get_by_role("button", name="Trigger", exact=True).click()
        form.wait_for(state="detached")

    def approve(self, run_id: str, **answers: str) -> None:
        """Answer the task ``review`` of a run: fill in its fields and approve."""
        self.page.goto(f"{self.address}/dags/{DAG}/runs/{quote(run_id, safe='')}/tasks/review/required_actions")
        for name, value in answers.items():
            self.page.locator(f"[name=element_{name}]").fill(value)
        self.page.get_by_role("button", name="Approve").click()
        self.page.locator("[data-testid=hitl-option-Approve][disabled]").wait_for()

    def leave(self) -> None:
        """Show nothing: a page of Airflow's that is open draws itself all the time (a third of a core was seen)."""
        self.page.goto("about:blank")

    def open(self, path: str) -> str:
        """The text of a page of ours; it must be answered with 200."""
        answer = self.page.goto(urljoin(f"{self.address}/kafka-audit/", path))
        assert answer.status == 200, (path, answer.status)
        return str(self.page.inner_text("body"))

    def every_page(self, start: str = "", most: int = 150) -> Iterator[tuple[str, int]]:
        """Follow each link to pages of ours, each kind with its parameters once, and say what was answered."""
        waiting, seen = [start], set()
        while waiting and len(seen) < most:
            path = waiting.pop(0)
            answer = self.context.request.get(urljoin(f"{self.address}/kafka-audit/", path))
            yield path, answer.status
            base = answer.url
            for link in re.findall(r'href="([^"#]+)', answer.text() if "text/html" in answer.headers["content-type"] else ""):
                target = urlsplit(urljoin(base, link.replace("&amp;", "&")))
                name = target.path + (f"?{target.query}" if target.query else "")
                kind = re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{16}", "<id>", name)
                if target.path.startswith("/kafka-audit/") and kind not in seen:
                    seen.add(kind)
                    waiting.append(name.removeprefix("/kafka-audit/"))

"""The main flows in WebKit, driven by Selenium: Playwright drives only its own build of WebKit."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait
from selenium.webdriver.webkitgtk.options import Options
from selenium.webdriver.webkitgtk.service import Service

from tests.e2e.conftest import KEY
from tests.server import Client

FACT = "The greenhouse key hangs behind the clock in the hall."
# WebDriver takes a chip, which cuts its text off, for invisible.
FIND = """return [...document.querySelectorAll(arguments[0])]
  .find((element) => element.checkVisibility() && element.textContent.includes(arguments[1]))"""
LAST = "article.turn:nth-last-child(1 of .turn)"


class WebKit:
    """A WebKit browser: waits for what it is asked for."""

    def __init__(self, driver: webdriver.WebKitGTK) -> None:
        self.driver = driver

    def visit(self, person: Client, path: str = "/") -> None:
        self.driver.get(f"{person.url}/healthz")
        self.driver.delete_all_cookies()
        for cookie in person.http.cookies.jar:
            self.driver.add_cookie({"name": cookie.name, "value": cookie.value or "", "path": "/"})
        self.driver.get(person.url + path)

    def find(self, selector: str, text: str = "") -> WebElement:
        """Return the first visible element with this text."""
        found: WebElement = self._wait().until(
            lambda driver: driver.execute_script(FIND, selector, text), f"{selector} {text!r}"
        )
        return found

    def click(self, selector: str, text: str = "") -> None:
        """Click the first visible element with this text."""
        self._wait().until(lambda _driver: self.find(selector, text).click() is None, f"{selector} {text!r}")

    def file_field(self) -> WebElement:
        return self.driver.find_element(By.ID, "files")

    def send_message(self, message: str) -> None:
        self.find(".composer textarea").send_keys(message, Keys.ENTER)
        self.find(f"{LAST} .turn__message-text", message)

    def wait_until(self, script: str) -> None:
        self._wait().until(lambda driver: driver.execute_script(f"return {script}"), script)

    def _wait(self) -> WebDriverWait[Any]:
        # A frame can replace an element at any moment.
        return WebDriverWait(self.driver, 15, 0.1, ignored_exceptions=[StaleElementReferenceException])


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    """Start a screen, since this browser has no headless mode."""
    if not shutil.which("Xvfb"):
        pytest.skip("Xvfb is not on the PATH.")
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x1000x24", "-nolisten", "tcp"]
    process = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as number:
        yield f":{number.readline().strip()}"
    process.terminate()
    process.wait()


@pytest.fixture(scope="module")
def webkit(display: str) -> Iterator[WebKit]:
    browsers, program = list(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser")), shutil.which("WebKitWebDriver")
    if program is None or not browsers:
        pytest.skip("WebKitWebDriver or its MiniBrowser is not installed.")
    options = Options()
    options.binary_location = str(browsers[0])
    options.add_argument("--automation")
    driver = webdriver.WebKitGTK(options, Service(program, env={**os.environ, "DISPLAY": display}))
    yield WebKit(driver)
    driver.quit()


def test_an_answer_streams_and_another_is_stopped(webkit, alice, endpoint):
    endpoint.script(KEY, answer="Water **now**.\n\nThen close the tap again, slowly.", token_delay=1)
    webkit.visit(alice)
    webkit.send_message("How do we water?")
    webkit.find(f"{LAST} .answer__streaming--live p")
    webkit.find(f"{LAST} .answer__blocks strong", "now")
    webkit.find(f"{LAST} .turn__actions")
    endpoint.script(KEY, tokens=400, token_delay=0.05)
    webkit.send_message("Tell me everything")
    webkit.find(f"{LAST} .answer__streaming--live p")
    webkit.click(".send-button--stop")
    webkit.find(f"{LAST} .turn__status-text", "Stopped by Alice Owner")


def test_a_fact_is_recalled_cited_found_and_forgotten(webkit, alice, endpoint):
    webkit.visit(alice)
    webkit.send_message(FACT)
    webkit.find(f"{LAST} .turn__memory-text", "Remembered")
    thread = webkit.driver.current_url
    endpoint.script(KEY, answer="Behind the clock [1].")
    webkit.visit(alice)
    webkit.send_message("Where do we keep the thing that opens the glass house?")
    webkit.click(f"{LAST} a.citation")
    webkit.find(f"{LAST} .source-card .recall-item__text", "in the hall")

    webkit.visit(alice, "/search")
    webkit.find("#query").send_keys("hangs clock from:me type:document")
    webkit.find("h2", "No results")

    webkit.driver.get(thread)
    webkit.click(f"{LAST} summary[title='More']")
    webkit.click(f"{LAST} .menu__list *", "Forget…")
    webkit.wait_until("document.activeElement.textContent.trim() === 'Cancel'")
    webkit.click("#dialog button:enabled", "Forget everywhere")
    webkit.find(".receipt")
    assert "behind the clock" not in webkit.find("#main").text
    webkit.wait_until("document.readyState === 'complete'")  # a key does nothing before the scripts run
    webkit.driver.execute_script("document.querySelector('#threads-today a').focus()")
    ActionChains(webkit.driver).key_down(Keys.SHIFT).send_keys(Keys.F10).key_up(Keys.SHIFT).perform()
    webkit.wait_until("document.activeElement.textContent.trim() === 'Pin'")


def test_a_file_is_attached_and_a_document_uploaded(webkit, alice, tmp_path):
    valve, seal = tmp_path / "Valve.md", tmp_path / "Seal.md"
    valve.write_text("The valve opens at 4.2 bar.")
    seal.write_text("The seal is made of copper.")
    webkit.visit(alice)
    webkit.file_field().send_keys(str(valve))
    webkit.find(".chip--attached", "Valve.md")
    webkit.send_message("At what pressure does it open?")
    webkit.find(f"{LAST} .turn__attachments a", "Valve.md")
    webkit.visit(alice, "/documents")
    webkit.file_field().send_keys(str(seal))
    webkit.find(".document-row .memory-icon--remembered")

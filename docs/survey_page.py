"""Draw docs/_static/survey_page.png: the page of a survey on a phone, before and after the noise is drawn.

It needs chromium and chromium-driver, as Debian has them, selenium and Pillow.
"""

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from skldp import LDPGaussian

QUESTIONS = [("How long do you usually sleep before a work day?", "hours"),
             ("How long do you usually sleep before a free day?", "hours")]
WIDTH, SCALE = 400, 1.25

folder = Path(tempfile.mkdtemp())
protocol = LDPGaussian(epsilon=2.0, bounds=(3, 13)).protocol(n_features=2)
protocol.to_html(folder / "survey.html", "How long do we sleep?", QUESTIONS, "https://example.org/reports")

options = webdriver.ChromeOptions()
options.binary_location = shutil.which("chromium")
for option in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile"):
    options.add_argument(option)
browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
metrics = {"width": WIDTH, "height": 1000, "deviceScaleFactor": SCALE, "mobile": True}
browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
browser.get((folder / "survey.html").as_uri())
for name, hours in (("q0", "6.5"), ("q1", "8")):
    browser.find_element("id", name).send_keys(hours)
before = browser.get_screenshot_as_png()
browser.find_element("id", "draw").click()
shots = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in (before, browser.get_screenshot_as_png())]
browser.quit()

gap = 24
picture = Image.new("RGB", (2 * shots[0].width + gap, shots[0].height), "#8a93a3")
for place, shot in enumerate(shots):
    picture.paste(shot, (place * (shots[0].width + gap), 0))
path = Path(__file__).parent / "_static" / "survey_page.png"
picture.quantize(16).save(path, optimize=True)
print(path, path.stat().st_size)

#!/usr/bin/env python3
"""Clicks through the page that `reprise report --html` writes, in headless Chromium, over its debugging pipe.

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why`. Without a Chromium it skips, unless --must is given.

usage: browser.py [--must] [--shots FOLDER]   screenshots (light, dark, narrow) are left in FOLDER
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
FRAME_LIMIT_MS = 100    # for one drawing of 100,000 operations, on two busy cores without a graphics card


class Browser:
    """One headless Chromium with one page, spoken to in JSON over two pipes."""

    def __init__(self, program, folder):
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        arguments = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                     "--user-data-dir=" + folder, "--no-first-run", "--hide-scrollbars", "about:blank"]

        def place():
            os.dup2(to_read, 3 if to_read != 4 else 103)
            os.dup2(to_write, 4)

        # Both ends could lie on 3 and 4 already: move them out of the way first.
        to_read, to_write = (os.dup2(to_read, 203), os.dup2(to_write, 204))
        self.process = subprocess.Popen(arguments, preexec_fn=place, pass_fds=(3, 4, 203, 204),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.pending, self.number, self.session, self.complaints = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.requests = []

    def message(self):
        while b"\0" not in self.pending:
            more = os.read(self.read_end, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.pending += more
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def note(self, message):
        method, parameters = message.get("method", ""), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "failed: " + script))
        return answer["result"].get("value")

    def open(self, path, width=1280, height=1000):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.complaints, self.requests = [], []
        self.call("Page.navigate", url="file://" + path)
        self.until("document.readyState === 'complete' && typeof state === 'object'")
        self.settle()

    def until(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise RuntimeError("never: " + condition)
            time.sleep(0.02)

    def settle(self):
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def key(self, key, text=None, modifiers=0):
        codes = {"Enter": 13, " ": 32, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
                 "Home": 36, "End": 35, "Escape": 27}
        event = {"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        text = {"Enter": "\r", " ": " "}.get(key, text)
        if text:
            event["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def box(self, selector):
        return self.run(f"""(() => {{ const node = document.querySelector({json.dumps(selector)});
            node.scrollIntoView({{block: "center"}}); const box = node.getBoundingClientRect();
            return [box.x, box.y, box.width, box.height]; }})()""")

    def press(self, selector):
        x, y, width, height = self.box(selector)
        self.click(x + width / 2, y + height / 2)

    def shot(self, path):
        height = self.run("document.documentElement.scrollHeight")
        width = self.run("innerWidth")
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def shown(browser, selector):
    return browser.run(f"document.querySelector({json.dumps(selector)}).textContent")


def check_shows(browser, _):
    """The page says what the recording holds, and nothing is blank."""
    views = browser.run("data.views.map((v) => v.id)")
    assert views, "no views"
    peak = browser.run("size(state.view.peakBytes)")
    assert peak in shown(browser, "#sentence"), f"the sentence does not say {peak}"
    for chart in ("memory", "lives", "flame"):
        colours = browser.run(f"""(() => {{ const c = element("{chart}"), d = c.getContext("2d").getImageData(0, 0,
            c.width, c.height).data, seen = new Set(); for (let i = 0; i < d.length; i += 4)
            seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; }})()""")
        assert colours > 3, f"{chart} is blank"


def check_sums(browser, _):
    """What is drawn adds up to what was held, at every position."""
    worst = browser.run("""Math.max(...data.views.map((view) => { state.view = view; const all = buildSeries(view);
        let worst = 0; for (let p = 0; p < view.positions; p++) { let sum = 0; for (const s of all) sum += s[p];
        worst = Math.max(worst, Math.abs(sum - view.held[p])); } return worst; }))""")
    browser.run("showView(data.views[0].id)")
    assert worst == 0, f"off by {worst} bytes"


def check_zoom(browser, _):
    """Wheel with Ctrl, buttons, double click; both charts move together."""
    x, y, width, height = browser.box("#memory")
    before = browser.run("[state.from, state.to]")
    browser.mouse("mouseWheel", x + width / 2, y + height / 2, deltaX=0, deltaY=-240, modifiers=2)
    browser.settle()
    after = browser.run("[state.from, state.to]")
    assert after[1] - after[0] < 0.9 * (before[1] - before[0]), f"{before} -> {after}"
    browser.mouse("mousePressed", x + width / 2, y + height / 2, button="left", buttons=1, clickCount=1)
    browser.mouse("mouseMoved", x + width / 2 + 100, y + height / 2, button="left", buttons=1)
    browser.mouse("mouseReleased", x + width / 2 + 100, y + height / 2, button="left", clickCount=1)
    browser.settle()
    assert browser.run("state.from") < after[0], "dragging to the right did not go back in time"
    browser.press("#zoomin")
    browser.press("#reset")
    assert browser.run("[state.from, state.to]") == before, "Whole does not show the whole"


def check_hover(browser, _):
    """The pointer over a bar tells name, size and stack; away from it nothing."""
    x, y, width, _ = browser.box("#lives")
    browser.mouse("mouseMoved", x + 74 + (width - 86) / 2, y + 10 + 4)
    browser.settle()
    said = shown(browser, "#tip")
    assert not browser.run("tip.hidden"), "no tip"
    assert "iB" in said and "held" in said, said
    browser.mouse("mouseMoved", x + width / 2, y - 20)
    browser.settle()
    assert browser.run("tip.hidden"), "the tip stays"


def check_keyboard(browser, _):
    """Everything can be reached with Tab; arrows, Enter and Space work; focus is seen."""
    browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen = []
    for _ in range(40):
        browser.key("Tab")
        seen.append(browser.run("document.activeElement.id || document.activeElement.textContent"))
    for wanted in ("theme", "memory", "filter", "lives", "flame"):
        assert wanted in seen, f"Tab never reaches {wanted}: {seen}"
    browser.run("element('memory').focus()")
    assert browser.run("getComputedStyle(element('memory')).outlineStyle") != "none", "focus is not seen"
    browser.key("ArrowRight")
    assert "at " in shown(browser, "#memory-said"), "the cursor says nothing"
    before = browser.run("state.to - state.from")
    browser.key("+", "+")
    assert browser.run("state.to - state.from") < before, "+ does not zoom"
    browser.key("Home")
    browser.run("element('lives').focus()")
    browser.key("ArrowDown")
    assert "iB" in shown(browser, "#lives-said"), "a chosen bar says nothing"
    browser.key("Enter")
    assert browser.run("state.bottom - state.top") < 1, "Enter does not zoom to the bar"
    browser.run("showWhole(); element('flame').focus()")
    whole = shown(browser, "#flame-said")
    browser.key("ArrowDown")
    assert shown(browser, "#flame-said") != whole, "the flame graph does not move"
    browser.key("Enter")
    assert browser.run("flame.zoom !== flame.root"), "Enter does not zoom into the flame graph"
    browser.key("Escape")


def check_table(browser, _):
    """Headings sort by click, Enter and Space; tabs change with arrows."""
    first = "document.querySelector('#tablebox tbody tr td').textContent"
    heading = "document.querySelectorAll('#tablebox th button')"
    browser.run(f"{heading}[0].focus()")
    browser.key("Enter")
    up = browser.run(first)
    assert browser.run("document.querySelector('#tablebox th').getAttribute('aria-sort')") == "ascending"
    browser.key(" ")
    down = browser.run(first)
    rows = browser.run("document.querySelectorAll('#tablebox tbody tr').length")
    assert rows < 2 or up != down, "Space does not turn the order"
    browser.press("#tablebox th.figure button")
    values = browser.run("""(() => { const i = [...document.querySelectorAll('#tablebox th')].findIndex((th) =>
        th.hasAttribute('aria-sort')); return tables[table.name].rows(state.view).map((r) => r[i])
        .sort((a, b) => b - a)[0]; })()""")
    assert browser.run(f"[...document.querySelectorAll('#tablebox tbody tr')][0].textContent.includes(size({values}))")
    browser.run("document.querySelector('#tabs [aria-selected=true]').focus()")
    browser.key("ArrowRight")
    assert browser.run("table.name") != "sites", "the arrow does not change the table"
    browser.press("#tab-sites")


def check_slider(browser, _):
    """The slider moves the cap in both charts and says what it costs."""
    if browser.run("!data.curve"):
        return "no curve in this recording"
    browser.run("element('cap').focus()")
    browser.key("End")
    before, said = browser.run("state.cap"), shown(browser, "#curve-said")
    for _ in range(3):
        browser.key("ArrowLeft")
    assert browser.run("state.cap") < before, "the arrow does nothing"
    browser.key("Home")
    assert browser.run("state.cap") < before, "the cap stays"
    assert shown(browser, "#curve-said") != said, "it says nothing"
    return None


def check_themes(browser, _):
    """Light and dark by the system, and by the button."""
    papers = []
    for theme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        browser.settle()
        papers.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert papers[0] != papers[1], papers
    browser.press("#theme")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == papers[0], "the button does nothing"
    browser.run("delete document.documentElement.dataset.theme; setTheme()")
    browser.call("Emulation.setEmulatedMedia", features=[])


def check_narrow(browser, path):
    """A phone's width: nothing sticks out."""
    browser.open(path, 390, 800)
    wide = browser.run("document.documentElement.scrollWidth")
    assert wide <= 390, f"{wide} pixels wide"
    browser.open(path)


def check_alone(browser, path):
    """No request leaves the file; nothing complains."""
    browser.open(path)
    browser.press("#viewgroup button:last-child")
    browser.press("#colourgroup button:last-child")
    browser.press("#axisgroup button:last-child")
    browser.settle()
    outside = [url for url in browser.requests if not url.startswith(("file://", "data:"))]
    assert not outside, outside
    assert not browser.complaints, browser.complaints
    assert browser.run("document.scripts.length") == 2, "there are scripts that are not ours"
    browser.open(path)


CHECKS = [check_shows, check_sums, check_zoom, check_hover, check_keyboard, check_table, check_slider, check_themes,
          check_narrow, check_alone]


def run_checks(browser, path, label):
    browser.open(path)
    for check in CHECKS:
        name = f"browser {label}: {check.__name__.removeprefix('check_')}"
        try:
            why = check(browser, path)
            print(f"skip {name}: {why}" if why else f"ok {name}")
        except (AssertionError, RuntimeError) as fault:
            print(f"not ok {name}: {fault}".replace("\n", " "))


def check_hostile(browser, folder):
    """Names that would be markup do nothing and are shown as they are."""
    path = report(folder, "hostile", ["hostile"])
    if path is None:
        print("skip browser: hostile names: make_trace does not write them")
        return
    browser.open(path)
    bad = browser.run("window.harmed === 1 || document.images.length > 0 || document.querySelectorAll('b[harm]').length > 0")
    name = browser.run("data.strings.find((s) => s.includes('</script>')) || ''")
    is_shown = browser.run("document.body.textContent.includes('</script><img')")
    is_fine = not bad and name and is_shown and not browser.complaints
    print("ok browser: hostile names" if is_fine else
          f"not ok browser: hostile names: harmed {bad}, name {name!r}, shown {is_shown}, {browser.complaints}")


def measure_frames(browser, path, label):
    """Panning and zooming: how long one drawing takes."""
    browser.open(path)
    browser.run("showView('run')")
    browser.settle()
    amounts = browser.run("[state.view.positions, state.view.born.length]")
    times = browser.run("""(async () => { frameTimes.length = 0;
        const frame = () => new Promise((done) => requestAnimationFrame(done));
        const end = axisEnd(state.view);
        for (let i = 0; i < 40; i++) { zoomAt(end * 0.4, i < 20 ? 0.8 : 1.25); await frame(); }
        setRange(end * 0.2, end * 0.5);
        for (let i = 0; i < 40; i++) { setRange(state.from + end * 0.005, state.to + end * 0.005); setRows(i / 100, 0.5 + i / 100); await frame(); }
        await frame(); return frameTimes.slice().sort((a, b) => a - b); })()""")
    middle, late = times[len(times) // 2], times[int(len(times) * 0.95)]
    said = f"{amounts[0]} positions, {amounts[1]} bars: median {middle:.1f} ms, 95 % {late:.1f} ms"
    print(f"# {label}: {said}", file=sys.stderr)
    print(f"ok browser: frame times ({said})" if late < FRAME_LIMIT_MS else f"not ok browser: frame times: {said}")


def report(folder, name, arguments, records="20000"):
    trace, page = os.path.join(folder, name + ".trace"), os.path.join(folder, name + ".html")
    made = subprocess.run([os.path.join(BUILD, "bench", "make_trace"), trace, records, "1"] + arguments,
                          capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return None
    subprocess.run([os.path.join(BUILD, "reprise-trace"), "report", trace, "--html", page], check=True,
                   stdout=subprocess.DEVNULL)
    return page


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


def main():
    program = find_browser()
    if program is None:
        why = "no Chromium here (make check-browser installs one)"
        print(f"not ok browser: {why}" if "--must" in sys.argv else f"skip browser: {why}")
        return
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(program, os.path.join(folder, "profile"))
        try:
            page = report(folder, "run", [])
            run_checks(browser, page, "made-up run")
            check_hostile(browser, folder)
            measure_frames(browser, report(folder, "long", [], "260000"), "260,000 records")
            if "--shots" in sys.argv:
                shots = sys.argv[sys.argv.index("--shots") + 1]
                take_shots(browser, sys.argv[-1] if sys.argv[-1].endswith(".html") else page, shots)
        finally:
            browser.close()


def take_shots(browser, page, folder):
    os.makedirs(folder, exist_ok=True)
    for theme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        browser.open(page, 1360, 900)
        browser.shot(os.path.join(folder, theme + ".png"))
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.open(page, 420, 900)
    browser.shot(os.path.join(folder, "narrow.png"))


main()
